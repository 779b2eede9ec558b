package network

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// refusals remembers the last refusalsKept different ones.
type refusals struct {
	mu   sync.Mutex
	seq  uint64
	list []refusal // in the order in which they first happened

	names map[string]bool // the last of them, for searched
}

const refusalsKept = 256

type refusal struct {
	sentence string
	last     uint64 // when it happened the last time
}

func (r *refusals) add(sentence string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seq++
	if i := slices.IndexFunc(r.list, func(old refusal) bool { return old.sentence == sentence }); i >= 0 {
		r.list[i].last = r.seq
		return
	}
	if len(r.list) >= refusalsKept {
		oldest := 0
		for i := range r.list {
			if r.list[i].last < r.list[oldest].last {
				oldest = i
			}
		}
		r.list = slices.Delete(r.list, oldest, oldest+1)
	}
	r.list = append(r.list, refusal{sentence, r.seq})
}

// addName is add for a name.
func (r *refusals) addName(name, sentence string) {
	r.add(sentence)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.names == nil || len(r.names) >= refusalsKept {
		r.names = map[string]bool{}
	}
	r.names[name] = true
}

// searched reports whether a name is one that was refused lately with a search domain
// after it: programs ask for these when there is no such name, and who reads the
// refusals has not meant them. A name of one part is not taken for such a one.
func (r *refusals) searched(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for range 16 { // search domains are short; nothing else is worth the time
		i := strings.LastIndexByte(name, '.')
		if i < 0 {
			return false
		}
		if name = name[:i]; r.names[name] && strings.Contains(name, ".") {
			return true
		}
	}
	return false
}

// Mark returns a place in the order of refusals, for Refusals.
func (g *Gate) Mark() uint64 {
	g.refusals.mu.Lock()
	defer g.refusals.mu.Unlock()
	return g.refusals.seq
}

// Refusals returns a sentence for each different refusal since a mark, the first
// first. What a full memory has forgotten is left out.
func (g *Gate) Refusals(since uint64) []string {
	g.refusals.mu.Lock()
	defer g.refusals.mu.Unlock()
	var sentences []string
	for _, one := range g.refusals.list {
		if one.last > since {
			sentences = append(sentences, one.sentence)
		}
	}
	return sentences
}

// refuse logs and remembers that a command did not get to an address. hint is what
// to know or do, "" where a rule would permit it.
func (g *Gate) refuse(v Verdict, to netip.AddrPort, hint string) {
	g.log(connection{verdict: v, to: to})
	g.refusals.add(blocked(v.Host, to.Port(), hint))
}

// refuseName is refuse for a question. reason is for the log, hint for the sentence.
func (g *Gate) refuseName(name, reason, hint string) {
	g.log(connection{verdict: Verdict{Host: hostName(name), Reason: reason}})
	g.refusals.addName(name, blocked(name, 0, hint))
}

// RefuseDatagram remembers that a command tried to send something else than TCP or a
// question for a name.
func (g *Gate) RefuseDatagram(to netip.AddrPort) {
	to = netip.AddrPortFrom(plain(to.Addr()), to.Port())
	v := Verdict{Host: to.Addr().String(), Reason: "not TCP: commands send nothing else than TCP and questions for names"}
	if names := g.reached.names(to.Addr()); len(names) > 0 {
		v.Host = names[0]
	}
	g.refuse(v, to, v.Reason)
}

// blocked words a refusal. port is 0 where only a name was asked for.
func blocked(host string, port uint16, hint string) string {
	at := hostName(host)
	if port != 0 {
		at = withPorts(at, portSet{some: []uint16{port}})
	}
	if hint == "" {
		hint = wayOut(host, port)
	}
	return "blocked by the sandbox: network to " + at + " (" + hint + ")"
}

// wayOut says which rule would permit a name or address.
func wayOut(host string, port uint16) string {
	if hostName(host) != host {
		return "no rule of --network permits it"
	}
	ports := defaultPorts
	if port != 0 && !defaultPorts.has(port) {
		ports = portSet{some: []uint16{port}}
	}
	one, why := parseRule(withPorts(host, ports))
	if why != "" || one.deny {
		return "no rule of --network permits it"
	}
	return "start the server with --network " + one.text + " to permit it"
}

// wayOut says how a special address is reached, where it can be.
func (s special) wayOut(addr netip.Addr, port uint16) string {
	if s.bits >= never {
		return noLoopback
	}
	return wayOut(addr.String(), port)
}

// noHost stands for a name that no host can have. Commands choose what is in such a
// name, and who reads a sentence should not read theirs.
const noHost = "a name that no host can have"

// hostName is a name or address from a command as it may stand in a sentence.
func hostName(name string) string {
	if addr, err := netip.ParseAddr(name); err == nil && addr.Zone() == "" {
		return addr.String()
	}
	if validName(name) {
		return name
	}
	return noHost
}

// printable is the text of an error in a sentence.
func printable(text string) string {
	text = strings.Trim(strconv.QuoteToASCII(text), `"`)
	return text[:min(len(text), 253)]
}
