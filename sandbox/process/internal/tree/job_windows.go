package tree

import (
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// threadEntrySize is what Windows wants to be told of the structure that it fills.
const threadEntrySize = uint32(unsafe.Sizeof(windows.ThreadEntry32{}))

// setJobLimits says what a job object holds its processes to.
func setJobLimits(job windows.Handle, limits *windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION) error {
	_, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(limits)), uint32(unsafe.Sizeof(*limits)))
	return os.NewSyscallError("SetInformationJobObject", err)
}

// jobAccounting is JOBOBJECT_BASIC_ACCOUNTING_INFORMATION.
type jobAccounting struct {
	userTime, kernelTime, periodUserTime, periodKernelTime int64
	pageFaults, processes, active, terminated              uint32
}

// activeProcesses counts the processes of a job object that have not ended; none when it cannot be told.
func activeProcesses(job windows.Handle) uint32 {
	var a jobAccounting
	if err := windows.QueryInformationJobObject(job, windows.JobObjectBasicAccountingInformation, uintptr(unsafe.Pointer(&a)), uint32(unsafe.Sizeof(a)), nil); err != nil {
		return 0
	}
	return a.active
}
