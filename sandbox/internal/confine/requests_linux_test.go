//go:build amd64 || arm64

package confine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/namespaces"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"golang.org/x/sys/unix"
)

func init() { probeTable["subvolume"] = escape{try: plantSubvolume} }

// Requests of btrfs and ext4.
const (
	subvolumeCreate   = 0x5000940e // BTRFS_IOC_SUBVOL_CREATE
	subvolumeSnapshot = 0x50009401 // BTRFS_IOC_SNAP_CREATE
	fileSetVersion    = 0x40087602 // FS_IOC_SETVERSION
	ext4SetGeneration = 0x40086604 // EXT4_IOC_SETVERSION
)

// onVolume makes a subvolume, or a snapshot of that which fd refers to, in a
// directory that is open to read.
func onVolume(request uintptr, dir, name string, fd int) error {
	args := struct { // struct btrfs_ioctl_vol_args
		fd   int64
		name [4088]byte
	}{fd: int64(fd)}
	copy(args.name[:], name)
	return withFD(dir, unix.O_RDONLY|unix.O_DIRECTORY, func(in int) error {
		return syscallErr(unix.SYS_IOCTL, uintptr(in), request, ptr(&args))
	})
}

// plantSubvolume puts a program of its own where it can only read: as a snapshot
// of a subvolume of the workspace or, if it can make none there, of the workspace.
func plantSubvolume() error {
	made := onVolume(subvolumeCreate, ".", "mine", 0)
	content := "mine"
	if made != nil {
		content = "."
	}
	if err := os.WriteFile(filepath.Join(content, "planted"), []byte("code"), 0o755); err != nil {
		return err
	}
	empty := onVolume(subvolumeCreate, outside(""), "empty-subvolume", 0)
	planted := withFD(content, unix.O_RDONLY|unix.O_DIRECTORY, func(fd int) error {
		return onVolume(subvolumeSnapshot, outside(""), "package", fd)
	})
	if planted != nil && empty != nil {
		return fmt.Errorf("%v, %v, %v", made, empty, planted)
	}
	return nil
}

// reflink is what btrfs is there for.
const reflink = "echo text > original && cp --reflink=always original copy"

// TestSubvolumes: commands make no directories on btrfs where they may only read, and
// share blocks between their files.
func TestSubvolumes(t *testing.T) {
	exe, err := os.Executable()
	must(t, err)
	volume := btrfs(t)
	try := func(t *testing.T, name string, do func(p place, env []string)) (planted bool) {
		p := place{filepath.Join(volume, name, "ws"), filepath.Join(volume, name, "outside")}
		must(t, os.MkdirAll(p.outside, 0o755))
		must(t, onVolume(subvolumeCreate, filepath.Join(volume, name), "ws", 0)) // which can be a snapshot's origin, too
		do(p, []string{probeVar + "=subvolume", "PROBE_OUTSIDE=" + p.outside})
		names, err := os.ReadDir(p.outside)
		must(t, err)
		return len(names) > 0
	}
	policy := func(p place) policy.Policy {
		return policy.DefaultPolicy(policy.Inputs{Workspace: p.ws, Path: os.Getenv("PATH"), AllowRead: []string{exe, p.outside}})
	}
	if !try(t, "free", func(p place, env []string) {
		if r := p.do(t, nil, env, exe); r.err != nil {
			t.Errorf("unconfined: %s", r.out)
		}
	}) {
		t.Error("unconfined it plants nothing: the test proves nothing")
	}
	if try(t, "threads", func(p place, env []string) {
		c := confiner(t, policy(p), kernel.Missing{})
		if r := p.do(t, c, env, exe); r.err == nil {
			t.Error("threads: it got out")
		}
		if r := p.sh(t, c, reflink); r.err != nil {
			t.Errorf("threads: files cannot share blocks: %s", r.out)
		}
	}) {
		t.Error("threads: the outside has changed")
	}
	if try(t, "namespaces", func(p place, env []string) {
		i, err := namespaces.New(namespaces.Isolation{Policy: policy(p), Workspace: p.ws})
		if err != nil {
			t.Skip(err)
		}
		defer i.Close()
		if _, status := p.in(t, i, env, exe); status.ExitStatus() == 0 {
			t.Error("namespaces: it got out")
		}
		if out, status := p.inSh(t, i, reflink); status.ExitStatus() != 0 {
			t.Errorf("namespaces: files cannot share blocks: %s", out)
		}
	}) {
		t.Error("namespaces: the outside has changed")
	}
}

// btrfs mounts a small file system of that kind.
func btrfs(t *testing.T) string {
	if os.Getuid() != 0 {
		t.Skip("only root can mount one")
	}
	dir, err := os.MkdirTemp("", "c-*")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	image, volume := filepath.Join(dir, "image"), filepath.Join(dir, "volume")
	must(t, os.WriteFile(image, nil, 0o600))
	must(t, os.Truncate(image, 200<<20))
	must(t, os.Mkdir(volume, 0o755))
	for _, argv := range [][]string{{"mkfs.btrfs", "-q", image}, {"mount", "-o", "loop", image, volume}} {
		if out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Skipf("there is no btrfs here: %s: %v %s", argv[0], err, out)
		}
	}
	t.Cleanup(func() {
		deadline := time.Now().Add(time.Minute)
		for unix.Unmount(volume, 0) != nil && time.Now().Before(deadline) { // somebody may still look at it
			time.Sleep(50 * time.Millisecond)
		}
		_ = unix.Unmount(volume, unix.MNT_DETACH) // not to remove what is in it with dir
	})
	return volume
}

// setGeneration changes the generation of this program's file, and with it the
// time of its last change.
func setGeneration() error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	return withFD(exe, unix.O_RDONLY, func(fd int) error {
		generation := int64(12345)
		if syscallErr(unix.SYS_IOCTL, uintptr(fd), ext4SetGeneration, ptr(&generation)) == nil {
			return nil
		}
		return syscallErr(unix.SYS_IOCTL, uintptr(fd), fileSetVersion, ptr(&generation))
	})
}

// lease makes whoever opens the file wait.
func lease() error {
	if err := os.WriteFile("leased", nil, 0o600); err != nil {
		return err
	}
	return withFD("leased", unix.O_RDONLY, func(fd int) error {
		_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_WRLCK)
		return err
	})
}
