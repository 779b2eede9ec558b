package private

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// hostsTable is where the system's library looks names up before it asks a server;
// which one that asks is the gateway's affair.
const hostsTable = "/etc/hosts"

// LayNames makes the table of names that commands see instead of the machine's, and
// returns what is laid over what.
func (d *Dir) LayNames() (map[string]string, error) {
	machine, _ := os.ReadFile(hostsTable) // one that cannot be read is empty
	name := strings.TrimPrefix(hostsTable, "/")
	if err := d.Root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return map[string]string{hostsTable: d.Path + hostsTable}, d.Write(name, []byte(ownNames(string(machine))), 0o644)
}

// Hostname is what the machine calls itself, "" when that is no word.
func Hostname() string {
	name, err := os.Hostname()
	if err != nil || len(strings.Fields(name)) != 1 {
		return ""
	}
	return name
}

// ownNames is the table of hosts without the machine's neighbours: who asks for one
// of those shall ask the server, which answers from the machine's table what the
// rules permit. Loopback is the session's own, and the machine knows its own name.
func ownNames(text string) string {
	machine := Hostname()
	var out strings.Builder
	local, named := false, machine == ""
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		addr, err := netip.ParseAddr(words[0])
		if err != nil || !addr.IsLoopback() && !addr.IsMulticast() && !(machine != "" && slices.Contains(words[1:], machine)) {
			continue
		}
		named = named || slices.Contains(words[1:], machine)
		local = local || addr.IsLoopback() && slices.Contains(words[1:], "localhost")
		out.WriteString(strings.Join(words, " ") + "\n")
	}
	if !named {
		out.WriteString("127.0.1.1 " + machine + "\n")
	}
	if !local {
		return "127.0.0.1 localhost\n::1 localhost\n" + out.String()
	}
	return out.String()
}
