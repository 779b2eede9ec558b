package hints

import (
	"os"
	"strconv"
	"strings"
)

// outsideListener tells of a port which server it belongs to.
const OutsideListener = ", where a server outside the session listens"

// ListensOnLoopback reports whether a server of this machine, as we see it, listens
// on a port of loopback or of all addresses.
func ListensOnLoopback(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return false
	}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := os.ReadFile(table)
		for line := range strings.Lines(string(text)) {
			if field := strings.Fields(line); len(field) > 3 && field[3] == listenState && listensAt(field[1], n) {
				return true
			}
		}
	}
	return false
}

const listenState = "0A"

// listensAt compares an address of the table, as in "0100007F:1F90".
func listensAt(address string, port uint64) bool {
	ip, number, _ := strings.Cut(address, ":")
	n, err := strconv.ParseUint(number, 16, 16)
	if err != nil || n != port {
		return false
	}
	switch ip {
	case "0100007F", "00000000000000000000000001000000": // 127.0.0.1 and ::1, of a little-endian machine
		return true
	}
	return strings.Trim(ip, "0") == ""
}
