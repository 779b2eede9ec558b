//go:build amd64 || arm64

package namespaces

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"golang.org/x/sys/unix"
)

// mapIDs gives the user namespace its ids: the same as outside, all that root
// may map, or the user's own.
func (k *Keeper) mapIDs() error {
	uids, gids := fmt.Sprintf("%[1]d %[1]d 1\n", os.Geteuid()), fmt.Sprintf("%[1]d %[1]d 1\n", os.Getegid())
	if os.Geteuid() == 0 {
		if err := k.writeIDs(sameIDs("/proc/self/uid_map"), sameIDs("/proc/self/gid_map")); err == nil {
			return nil
		}
	}
	if err := k.writeProc("setgroups", "deny"); err != nil {
		return err
	}
	return k.writeIDs(uids, gids)
}

func (k *Keeper) writeIDs(uids, gids string) error {
	if err := k.writeProc("uid_map", uids); err != nil {
		return err
	}
	if err := k.writeProc("gid_map", gids); err != nil {
		return err
	}
	k.uids, k.gids = uids, gids
	return nil
}

func (k *Keeper) writeProc(name, text string) error {
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/%s", k.PID, name), []byte(text), 0); err != nil {
		return err
	}
	return nil
}

// sameIDs maps every id of this namespace to itself.
func sameIDs(name string) string {
	text, _ := os.ReadFile(name)
	var same strings.Builder
	for line := range strings.Lines(string(text)) {
		var first, outside, size int
		if _, err := fmt.Sscan(line, &first, &outside, &size); err == nil {
			fmt.Fprintln(&same, first, first, size)
		}
	}
	return same.String()
}

// A span is a range of addresses.
type span struct{ from, to uintptr }

// foreign lists what a keeper has no use for in its copy of our memory: all but
// its code, the arenas, and what the kernel keeps there itself.
func (k *Keeper) foreign() (gaps []span) {
	code := reflect.ValueOf(kernel.CloneRun).Pointer()
	kept := []span{k.arena.span(), k.own.span()}
	end := uintptr(0)
	text, _ := os.ReadFile("/proc/self/maps")
	for line := range strings.Lines(string(text)) {
		var m span
		if _, err := fmt.Sscanf(line, "%x-%x", &m.from, &m.to); err != nil || m.from > 1<<62 {
			continue
		}
		if m.from <= code && code < m.to || strings.Contains(line, "[v") {
			kept = append(kept, m)
		}
		end = max(end, m.to)
	}
	slices.SortFunc(kept, func(a, b span) int { return int(a.from>>12) - int(b.from>>12) })
	from := uintptr(0)
	for _, m := range append(kept, span{end, end}) {
		if m.from > from {
			gaps = append(gaps, span{from, m.from})
		}
		from = max(from, m.to)
	}
	return gaps
}

func (a *arena) span() span {
	from := reflect.ValueOf(a.mem).Pointer()
	page := uintptr(unix.Getpagesize())
	return span{from, from + (uintptr(len(a.mem))+page-1)&^(page-1)}
}
