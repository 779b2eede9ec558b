// Package kernels runs the program and its batteries on kernels that people have,
// rather than on the one that happens to run the tests: Debian's 6.1 (Landlock
// ABI 2) and 6.12 (ABI 6), one without Landlock, and one for arm64. QEMU boots them
// without KVM from an initial file system that holds busybox and our own
// binaries, so each test needs seconds, and no rights.
//
//	PERSTACK_BASE_KERNELS=1 go test -v ./e2e/kernels
//
// With 'server killed' instead of 1 it runs only the jobs whose names match that.
// It takes qemu-system-x86, qemu-system-arm and a Debian whose apt answers; what is
// missing is skipped, and said. Without the variable nothing boots. Start with
// kernels_linux_test.go, which says what runs where; a job is one script in a
// machine, and machine_linux_test.go boots it.
package kernels
