package trace

import (
	"encoding/hex"
	"strings"
)

// Flags of a traceparent. The others are not passed on: nobody knows what they mean.
const (
	flagSampled = 1
	flagRandom  = 2
)

// A Parent is the span of a client that a request belongs to. The zero Parent is none.
type Parent struct {
	trace traceID
	span  spanID
	flags byte
	state string
}

// parentLen is the length of a traceparent: version, trace, span and flags.
const parentLen = len("00-") + 32 + len("-") + 16 + len("-00")

// ParseParent reads traceparent and tracestate as W3C Trace Context has them. A
// malformed traceparent is none, and a malformed tracestate is dropped.
func ParseParent(traceparent, tracestate string) (p Parent) {
	if len(traceparent) < parentLen || traceparent[2] != '-' || traceparent[35] != '-' || traceparent[52] != '-' {
		return Parent{}
	}
	var version, flags [1]byte
	ok := decode(version[:], traceparent[:2]) && decode(p.trace[:], traceparent[3:35]) &&
		decode(p.span[:], traceparent[36:52]) && decode(flags[:], traceparent[53:parentLen])
	rest := traceparent[parentLen:] // what later versions may add
	switch {
	case !ok, p.trace == traceID{}, p.span == spanID{}, version[0] == 0xff:
		return Parent{}
	case version[0] == 0 && rest != "", rest != "" && rest[0] != '-':
		return Parent{}
	}
	p.flags = flags[0] & (flagSampled | flagRandom)
	if goodState(tracestate) {
		p.state = tracestate
	}
	return p
}

// decode reads hexadecimal digits, which must be in lower case.
func decode(to []byte, digits string) bool {
	if strings.ContainsAny(digits, "ABCDEF") {
		return false
	}
	_, err := hex.Decode(to, []byte(digits))
	return err == nil
}

// Bounds of a tracestate that is passed on.
const (
	maxState   = 512
	maxMembers = 32
)

// goodState reports whether a tracestate is a list of KEY=VALUE in printable ASCII.
func goodState(state string) bool {
	if state == "" || len(state) > maxState || strings.Count(state, ",") >= maxMembers {
		return false
	}
	for i := range len(state) {
		if state[i] < ' ' || state[i] > '~' {
			return false
		}
	}
	for member := range strings.SplitSeq(state, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(member), "=")
		if !ok || key == "" || value == "" || strings.ContainsAny(key, " \"") || strings.Contains(value, "=") {
			return false
		}
	}
	return true
}

// Names of the variables that tell a program to which trace it belongs.
const (
	EnvParent = "TRACEPARENT"
	EnvState  = "TRACESTATE"
)

// Env is what makes a program's spans children of s, by the names of variables; nil
// for a nil span.
func (s *Span) Env() map[string]string {
	if s == nil {
		return nil
	}
	flags := [1]byte{s.flags}
	env := map[string]string{EnvParent: "00-" + s.TraceID() + "-" + s.ID() + "-" + hex.EncodeToString(flags[:])}
	if s.state != "" {
		env[EnvState] = s.state
	}
	return env
}
