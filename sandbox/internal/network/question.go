package network

import (
	"context"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// A question is what a query asks, with what of the query an answer repeats.
type question struct {
	header dnsmessage.Header
	asked  []dnsmessage.Question // one, or none in a query that is malformed
	edns   bool
	most   int // bytes that the asker takes in a datagram
	code   dnsmessage.RCode
}

const (
	plainSize = 512  // without EDNS
	ednsSize  = 1232 // what fits every network
)

// Answer answers a DNS query of a command, and returns nil for what is none. size
// bounds the answer in bytes, 0 for none: what does not fit is marked as truncated.
// An asker may have said that it takes less.
func (g *Gate) Answer(ctx context.Context, query []byte, size int) []byte {
	answer, _ := g.answer(ctx, query, size, func(q asked) (found, bool) { return g.find(ctx, q), true })
	return answer
}

// AnswerNow is Answer for what needs no lookup: what is refused or malformed, and
// names that were looked up lately. For others it does nothing, and ok is false.
func (g *Gate) AnswerNow(query []byte, size int) (answer []byte, ok bool) {
	return g.answer(g.ctx, query, size, g.lookups.remembered)
}

// AnswerNone answers a DNS query where the network is closed: there is no name but
// localhost. It returns nil for what is no query.
func AnswerNone(query []byte, size int) []byte {
	q, ok := readQuestion(query)
	if !ok {
		return nil
	}
	if size > 0 {
		size = min(size, q.most)
	}
	switch {
	case q.code != dnsmessage.RCodeSuccess:
		return q.answer(reply{code: q.code}, size)
	case isLocalhost(canonicalName(q.asked[0].Name.String())):
		return q.answer(localhost(q.asked[0].Type), size)
	}
	return q.answer(blockedName, size)
}

// A finder has the addresses of a name. It is not ok where these are not known yet.
type finder func(asked) (f found, ok bool)

func (g *Gate) answer(ctx context.Context, query []byte, size int, find finder) (answer []byte, ok bool) {
	q, ok := readQuestion(query)
	if !ok || !g.begin() {
		return nil, true
	}
	defer g.work.Done()
	if size > 0 {
		size = min(size, q.most)
	}
	if q.code != dnsmessage.RCodeSuccess {
		return q.answer(reply{code: q.code}, size), true
	}
	r, ok := g.ask(ctx, q.asked[0], find)
	if !ok || g.ctx.Err() != nil {
		return nil, ok
	}
	return q.answer(r, size), true
}

// ask decides what a question is answered with, if find can say.
func (g *Gate) ask(ctx context.Context, q dnsmessage.Question, find finder) (r reply, ok bool) {
	name := canonicalName(q.Name.String())
	rules := g.cfg.Rules
	switch grant := rules.name(name); {
	case q.Class != dnsmessage.ClassINET:
		return reply{code: dnsmessage.RCodeRefused}, true
	case isLocalhost(name):
		return localhost(q.Type), true
	case strings.HasSuffix(name, ".in-addr.arpa"), strings.HasSuffix(name, ".ip6.arpa"): // what an address is called: nobody says
		return reply{}, true
	case !validName(name):
		return g.refuseQuestion(name, ""), true
	case grant.ports.empty() && rules.searched(name):
		return reply{code: dnsmessage.RCodeNameError}, true
	case grant.ports.empty() && g.refusals.searched(name):
		g.log(connection{verdict: Verdict{Host: name, Reason: "no rule permits it"}})
		return blockedName, true
	case grant.ports.empty() && len(grant.denials) == 0:
		return g.refuseQuestion(name, ""), true
	case grant.narrow().empty():
		return g.refuseQuestion(name, deniedBy(grant.denials[0].rule)), true
	}
	switch q.Type {
	case dnsmessage.TypeA:
		return g.reply(ctx, asked{"ip4", name}, find)
	case dnsmessage.TypeAAAA:
		return g.reply(ctx, asked{"ip6", name}, find)
	}
	return reply{}, true
}

// blockedName and blockedAddresses answer for names that no rule permits, and for such
// as have no address that may be reached. The code REFUSED would say the same, but to
// programs it means that another server knows more: musl waits five seconds for that
// one's answer, and glibc has its callers try again.
var (
	blockedName      = reply{code: dnsmessage.RCodeNameError, blocked: true}
	blockedAddresses = reply{blocked: true}
)

func (g *Gate) refuseQuestion(name, hint string) reply {
	if name == "" { // the root is asked for by programs that look for a resolver
		return reply{code: dnsmessage.RCodeRefused}
	}
	reason := hint
	if reason == "" {
		reason = "no rule permits it"
	}
	g.refuseName(name, reason, hint)
	return blockedName
}

// localhost answers as every resolver should (RFC 6761).
func localhost(t dnsmessage.Type) reply {
	switch t {
	case dnsmessage.TypeA:
		return reply{ttl: 60, addrs: []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}}
	case dnsmessage.TypeAAAA:
		return reply{ttl: 60, addrs: []netip.Addr{netip.IPv6Loopback()}}
	}
	return reply{}
}

// searched reports whether a name is a permitted one with a search domain after it.
// Programs try these first or last, and nobody wants to reach them.
func (r Rules) searched(name string) bool {
	for range 16 { // search domains are short; nothing else is worth the time
		i := strings.LastIndexByte(name, '.')
		if i < 0 {
			return false
		}
		name = name[:i]
		if !r.name(name).narrow().empty() {
			return true
		}
	}
	return false
}

// readQuestion reads a query. What is none, or an answer, is not ok; what is one
// that cannot be answered has a code.
func readQuestion(query []byte) (q question, ok bool) {
	var p dnsmessage.Parser
	header, err := p.Start(query)
	if err != nil || header.Response {
		return q, false
	}
	q.header, q.most = header, plainSize
	if header.OpCode != 0 {
		q.code = dnsmessage.RCodeNotImplemented
		return q, true
	}
	q.code = dnsmessage.RCodeFormatError
	asked, err := p.Question()
	if err != nil || p.SkipQuestion() != dnsmessage.ErrSectionDone {
		return q, true
	}
	if p.SkipAllAnswers() != nil || p.SkipAllAuthorities() != nil {
		return q, true
	}
	q.asked = []dnsmessage.Question{asked}
	for {
		extra, err := p.AdditionalHeader()
		if err == dnsmessage.ErrSectionDone {
			break
		}
		if err != nil || p.SkipAdditional() != nil {
			return q, true
		}
		if extra.Type == dnsmessage.TypeOPT {
			q.edns = true
			q.most = min(max(int(extra.Class), plainSize), ednsSize)
			if version := extra.TTL >> 16 & 0xff; version != 0 {
				q.code = badVersion
				return q, true
			}
		}
	}
	q.code = dnsmessage.RCodeSuccess
	return q, true
}

// badVersion answers EDNS of another version than 0 (RFC 6891).
const badVersion dnsmessage.RCode = 16

// answer writes an answer of at most size bytes, or of any where size is 0.
func (q question) answer(r reply, size int) []byte {
	addrs := r.addrs
	for {
		packed := q.pack(r, addrs)
		if size <= 0 || len(packed) <= size || len(addrs) == 0 {
			return packed
		}
		addrs = addrs[:len(addrs)-1]
	}
}

// pack writes an answer with some of a reply's addresses.
func (q question) pack(r reply, addrs []netip.Addr) []byte {
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{ID: q.header.ID, Response: true, OpCode: q.header.OpCode, RCode: r.code & 0xf,
		RecursionDesired: q.header.RecursionDesired, RecursionAvailable: true, CheckingDisabled: q.header.CheckingDisabled,
		Truncated: len(addrs) < len(r.addrs)})
	b.EnableCompression()
	fails := b.StartQuestions()
	for _, asked := range q.asked {
		fails = first(fails, b.Question(asked))
	}
	fails = first(fails, b.StartAnswers())
	for _, addr := range addrs {
		header := dnsmessage.ResourceHeader{Name: q.asked[0].Name, Class: dnsmessage.ClassINET, TTL: r.ttl}
		if addr.Is4() {
			fails = first(fails, b.AResource(header, dnsmessage.AResource{A: addr.As4()}))
		} else {
			fails = first(fails, b.AAAAResource(header, dnsmessage.AAAAResource{AAAA: addr.As16()}))
		}
	}
	fails = first(fails, b.StartAdditionals())
	if q.edns {
		var opt dnsmessage.ResourceHeader
		fails = first(fails, opt.SetEDNS0(ednsSize, r.code, false))
		fails = first(fails, b.OPTResource(opt, dnsmessage.OPTResource{Options: r.options()}))
	}
	packed, err := b.Finish()
	if first(fails, err) != nil {
		return nil
	}
	return packed
}

// options tell who can read it that an answer is not the name's own (RFC 8914).
func (r reply) options() []dnsmessage.Option {
	const extendedError, blocked = 15, 15
	if !r.blocked {
		return nil
	}
	return []dnsmessage.Option{{Code: extendedError, Data: append([]byte{0, blocked}, "blocked by the sandbox"...)}}
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
