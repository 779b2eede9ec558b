package search

import (
	"encoding/binary"
	"io"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// rawTree is a Tree over directory descriptors: what a sandbox on Linux does,
// and what the benchmarks measure.
type rawTree struct{ root int }

func openRaw(t testing.TB, dir string) Tree {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return rawTree{fd}
}

func (t rawTree) Open(path string) (Dir, File, error) {
	how := &unix.OpenHow{Flags: unix.O_CLOEXEC | unix.O_NONBLOCK, Resolve: unix.RESOLVE_BENEATH}
	fd, err := unix.Openat2(t.root, path, how)
	if err != nil {
		return nil, nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, nil, err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return rawDir(fd), nil, nil
	}
	return nil, rawFile(fd), nil
}

type rawDir int

func (d rawDir) Close() error { return unix.Close(int(d)) }

func (d rawDir) OpenDir(name string) (Dir, error) {
	fd, err := unix.Openat(int(d), name, unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	return rawDir(fd), err
}

func (d rawDir) OpenFile(name string) (File, error) {
	fd, err := unix.Openat(int(d), name, unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	return rawFile(fd), err
}

func (d rawDir) ReadDir() (entries []Entry, err error) {
	buf := make([]byte, 16<<10)
	for {
		n, err := unix.Getdents(int(d), buf)
		if err != nil || n == 0 {
			return entries, err
		}
		for b := buf[:n]; len(b) > 0; {
			size := binary.LittleEndian.Uint16(b[16:])
			name := unix.ByteSliceToString(b[19:size])
			kind := Special
			switch b[18] {
			case unix.DT_REG:
				kind = Regular
			case unix.DT_DIR:
				kind = Directory
			case unix.DT_LNK:
				kind = Link
			}
			if name != "." && name != ".." {
				entries = append(entries, Entry{name, kind})
			}
			b = b[size:]
		}
	}
}

type rawFile int

func (f rawFile) Close() error { return unix.Close(int(f)) }

func (f rawFile) Read(p []byte) (int, error) {
	n, err := unix.Read(int(f), p)
	if n == 0 && err == nil {
		return 0, io.EOF
	}
	return max(n, 0), err
}

func (f rawFile) ModTime() time.Time {
	var st unix.Stat_t
	_ = unix.Fstat(int(f), &st)
	return time.Unix(st.Mtim.Unix())
}
