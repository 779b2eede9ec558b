//go:build !linux

package proc

import (
	"math"
	"os"
)

// DescriptorRoom sees nothing here: without a cage a session holds hardly any.
func DescriptorRoom(*os.File, uint64, uint64) error { return nil }

// DescriptorShare is not asked of the system here.
func DescriptorShare(parts int) int { return math.MaxInt32 / parts }
