//go:build amd64 || arm64

package confine

// Foreseen tells why commands can certainly not be confined on this system, nil
// where it must be tried.
func Foreseen() error { return nil }

// Offered reports whether the kernel says that it has Landlock, which is asked
// without trying anything. Where it says no, namespaces may still confine commands.
func Offered() bool { return landlockABI() > 0 }
