package capture

import "os"

// Drain hands over what comes through f until its end.
func Drain(f *os.File, to *Stream) {
	defer f.Close()
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	for {
		n, err := f.Read(*buf)
		_, _ = to.Write((*buf)[:n])
		if err != nil {
			return
		}
	}
}
