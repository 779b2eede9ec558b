package remote

import "os"

// TakeStreams takes standard input and output for the server alone: what commands get
// of this process are the null device and standard error.
func TakeStreams() (in, out *os.File, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	if in, err = moved(os.Stdin, null); err == nil {
		out, err = moved(os.Stdout, null)
	}
	return in, out, err
}
