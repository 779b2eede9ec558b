// Command winehelper is what the tests of the Windows binary run as a command. It does what a program
// may do to outlive its caller.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"
)

func main() {
	var err error
	switch os.Args[1] {
	case "beat": // FILE: says for ever that it is there
		err = beat(os.Args[2])
	case "leave": // N FILE: leaves a chain of N processes behind, of which each says that it is there
		err = leave(os.Args[2], os.Args[3])
	case "stay": // N FILE: does the same, and waits for ever
		if err = leave(os.Args[2], os.Args[3]); err == nil {
			fmt.Println("waiting")
			time.Sleep(time.Hour)
		}
	case "say": // TEXT CODE: prints and exits
		fmt.Println(os.Args[2], os.Getenv("GIVEN"))
		code, _ := strconv.Atoi(os.Args[3])
		os.Exit(code)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func beat(file string) error {
	for ; ; time.Sleep(10 * time.Millisecond) {
		f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		if _, err := f.WriteString("."); err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
}

// leave starts a process that beats for this one, and one that goes on with the chain.
func leave(chain, file string) error {
	n, err := strconv.Atoi(chain)
	if err != nil || n == 0 {
		return err
	}
	if err := detached("beat", file+chain).Start(); err != nil {
		return err
	}
	return detached("leave", strconv.Itoa(n-1), file).Start()
}

func detached(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	detach(cmd)
	return cmd
}
