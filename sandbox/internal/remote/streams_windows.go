package remote

import "os"

// moved is the stream itself: there are no containers here to run commands in.
func moved(stream, _ *os.File) (*os.File, error) { return stream, nil }
