package containers

import (
	"os"
	"strconv"
	"strings"
	"sync"
)

// bootID names the time since this machine was started.
var bootID = sync.OnceValue(func() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text))
})

// pidNamespace names what the numbers of processes belong to.
var pidNamespace = sync.OnceValue(func() string {
	link, _ := os.Readlink("/proc/self/ns/pid") // pid:[4026531836]
	return strings.Trim(link, "pid:[]")
})

// processBegan is when a process was started, in ticks since boot; "" when there is none.
func processBegan(pid int) string {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	const began = 22 - 3 // the fields behind the name begin with the third
	if len(fields) <= began {
		return ""
	}
	return fields[began]
}
