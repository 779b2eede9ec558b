package files

import (
	"bytes"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Each benchmark has its floor beside it: the bare system calls for the same
// effect by absolute path, without any protection.

func BenchmarkRead1KB(b *testing.B) {
	w := newWorld(b)
	must(b, os.MkdirAll(w.path("a/b"), 0o755))
	must(b, os.WriteFile(w.path("a/b/f"), bytes.Repeat([]byte("x"), 1024), 0o644))
	b.Run("FS", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := w.fs.ReadFile("a/b/f", 1<<20); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("os.Root", func(b *testing.B) {
		root := w.fs.cur.Load().root
		b.ReportAllocs()
		for b.Loop() {
			if _, err := root.ReadFile("a/b/f"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("os", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := os.ReadFile(w.path("a/b/f")); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("floor", func(b *testing.B) {
		name, buf := w.path("a/b/f"), make([]byte, 2048)
		b.ReportAllocs()
		for b.Loop() {
			fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			must(b, err)
			var st unix.Stat_t
			must(b, unix.Fstat(fd, &st))
			_, err = unix.Read(fd, buf)
			must(b, err)
			must(b, unix.Close(fd))
		}
	})
}

func rawReplace(b *testing.B, name string, data []byte) {
	tmp := name + ".tmp"
	fd, err := unix.Open(tmp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o644)
	must(b, err)
	_, err = unix.Write(fd, data)
	must(b, err)
	must(b, unix.Close(fd))
	must(b, unix.Rename(tmp, name))
}

func BenchmarkWrite4KB(b *testing.B) {
	w := newWorld(b)
	data := bytes.Repeat([]byte("x"), 4096)
	must(b, os.MkdirAll(w.path("a/b"), 0o755))
	b.Run("FS", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := w.fs.Write("a/b/f", data); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("floor", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			rawReplace(b, w.path("a/b/g"), data)
		}
	})
}

func BenchmarkEdit100KB(b *testing.B) {
	w := newWorld(b)
	data := bytes.Repeat([]byte("0123456789"), 10_000)
	must(b, os.WriteFile(w.path("f"), data, 0o644))
	i := byte(0)
	change := func(old []byte) ([]byte, error) { i++; old[50_000] = i; return old, nil }
	b.Run("FS", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := w.fs.Edit("f", change); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("floor", func(b *testing.B) {
		buf := make([]byte, len(data))
		b.ReportAllocs()
		for b.Loop() {
			fd, err := unix.Open(w.path("f"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
			must(b, err)
			_, err = unix.Read(fd, buf)
			must(b, err)
			must(b, unix.Close(fd))
			_, _ = change(buf)
			rawReplace(b, w.path("f"), buf)
		}
	})
}

func BenchmarkWalk1000(b *testing.B) {
	w := newWorld(b)
	for i := range 10 {
		dir := w.path("d" + string(rune('0'+i)))
		must(b, os.Mkdir(dir, 0o755))
		for j := range 100 {
			must(b, os.WriteFile(dir+"/f"+string(rune('0'+j/10))+string(rune('0'+j%10)), []byte("x"), 0o644))
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		d, err := w.fs.OpenDir(".")
		must(b, err)
		walkAll(b, d)
	}
}

func walkAll(b *testing.B, d *Dir) {
	defer d.Close()
	list, err := d.Entries()
	must(b, err)
	for _, e := range list {
		if e.Type.IsDir() {
			sub, err := d.OpenDir(e.Name)
			must(b, err)
			walkAll(b, sub)
			continue
		}
		f, err := d.OpenFile(e.Name)
		must(b, err)
		f.Close()
	}
}
