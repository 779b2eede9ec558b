package filetest

import (
	"os"
	"strings"
	"syscall"
)

// FirstThreadEnds in its environment makes a test binary a program whose first thread ends
// and whose others go on, as a program in C does that ends its main by pthread_exit: the
// system shows it as one that has ended.
const FirstThreadEnds = "PERSTACK_BASE_TEST_FIRST_ENDS=1"

func init() { // on the first thread
	if name, value, _ := strings.Cut(FirstThreadEnds, "="); os.Getenv(name) == value {
		_, _, _ = syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0)
	}
}
