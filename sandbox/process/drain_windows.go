package process

import "os"

// drain hands over what comes through f until its end.
func drain(f *os.File, to *capture) {
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
