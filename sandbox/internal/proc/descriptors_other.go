//go:build !linux

package proc

import "os"

// DescriptorRoom sees nothing here: without a cage a session holds hardly any.
func DescriptorRoom(*os.File) error { return nil }
