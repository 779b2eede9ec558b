//go:build !race

package media

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
)

// These measure memory, of which the race detector takes its own share and two
// minutes.

// blackPNG is a PNG of black pixels, made without holding them.
func blackPNG(t testing.TB, w, h int, depth, kind byte, pixelBytes int) []byte {
	t.Helper()
	chunk := func(to []byte, name string, body []byte) []byte {
		to = binary.BigEndian.AppendUint32(to, uint32(len(body)))
		named := append([]byte(name), body...)
		return binary.BigEndian.AppendUint32(append(to, named...), crc32.ChecksumIEEE(named))
	}
	var b bytes.Buffer
	z, _ := zlib.NewWriterLevel(&b, zlib.BestSpeed)
	rows := make([]byte, (1+w*pixelBytes)*max(1, 1<<16/(1+w*pixelBytes)))
	for left := (1 + w*pixelBytes) * h; left > 0; left -= len(rows) {
		if _, err := z.Write(rows[:min(left, len(rows))]); err != nil {
			t.Fatal(err)
		}
	}
	z.Close()
	ihdr := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(w)), uint32(h))
	out := chunk([]byte("\x89PNG\r\n\x1a\n"), "IHDR", append(ihdr, depth, kind, 0, 0, 0))
	return chunk(chunk(out, "IDAT", b.Bytes()), "IEND", nil)
}

const rgba, gray = 6, 0 // colour types of PNG

// TestManyLargeImages: six large pictures at a time take the memory of one.
func TestManyLargeImages(t *testing.T) {
	testlevel.NotQuick(t, "scales images of many megapixels")
	data := blackPNG(t, 3000, 3000, 8, rgba, 4) // 34 MiB decoded
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	var calls sync.WaitGroup
	for range 6 {
		calls.Go(func() {
			if got, err := viewBytes(data); err != nil || got.SentWidth != 768 || got.SentHeight != 768 {
				t.Error(got, err)
			}
		})
	}
	done := make(chan struct{})
	go func() { calls.Wait(); close(done) }()
	const limit = 90 << 20
	for most := uint64(0); ; {
		runtime.ReadMemStats(&now)
		if most = max(most, now.HeapAlloc); most > before.HeapAlloc+limit {
			t.Fatalf("%d MiB in use", most>>20)
		}
		select {
		case <-done:
			t.Logf("at most %d MiB in use, %d MiB allocated in all", most>>20, (now.TotalAlloc-before.TotalAlloc)>>20)
			return
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// TestThinImage: scaling a picture that is all height takes no more than decoding it.
func TestThinImage(t *testing.T) {
	data := blackPNG(t, 1, 4_500_000, 8, gray, 1)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if got, err := viewBytes(data); err != nil || got.SentWidth != 1 || got.SentHeight != 768 {
		t.Fatal(got, err)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 40<<20 {
		t.Errorf("%d MiB for a picture of 4.5 MB", took>>20)
	}
}
