package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/process"
)

// quotaFlags take what the commands of one session may use together.
func quotaFlags(f *pflag.FlagSet, q *process.Quota) {
	f.Var(&setting{"SIZE", "", func(text string) error {
		size, err := process.ParseSize(text)
		if err != nil || size < process.MinMemory {
			return fmt.Errorf("must be a number of bytes, or of K, M, G or T (powers of 1024), at least %s, as in 512M or 2G", process.SizeText(process.MinMemory))
		}
		q.MaxMemory = size
		return nil
	}}, "max-memory", "end the commands of a session when they use more memory than this together, as in 512M or 2G (default: no limit)")
	f.Var(&setting{"N", "", func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > math.MaxInt32 {
			return fmt.Errorf("must be a number of processes from 1 to %d, as in 64", math.MaxInt32)
		}
		q.MaxProcesses = n
		return nil
	}}, "max-processes", fmt.Sprintf("let the commands of a session have this many processes and threads together (default %d, where the kernel counts them)", sandbox.DefaultLimits.Processes))
	f.Var(&setting{"N", "", func(text string) error {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || !(n >= process.MinCPUs && n <= process.MaxCPUs) {
			return errors.New("must be a number of processors of at least " + strconv.FormatFloat(process.MinCPUs, 'g', -1, 64) + ", as in 0.5 or 2")
		}
		q.MaxCPUs = n
		return nil
	}}, "max-cpus", "let the commands of a session use this much processor time together, in processors, as in 0.5 or 2 (default: no limit)")
}

// hinted has an error say what to do about it, too.
func hinted(err error) error {
	var hinter interface{ Hint() string }
	if errors.As(err, &hinter) && hinter.Hint() != "" {
		return fmt.Errorf("%w. %s", err, hinter.Hint())
	}
	return err
}
