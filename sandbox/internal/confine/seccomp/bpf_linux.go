//go:build amd64 || arm64

package seccomp

import (
	"slices"
	"sort"

	"golang.org/x/sys/unix"
)

// What a filter can answer.
const (
	retAllow  = unix.SECCOMP_RET_ALLOW
	retNotify = unix.SECCOMP_RET_USER_NOTIF
)

func retErrno(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }

// ownThread stands in a condition for the id of the thread that installs the
// filter; it becomes known only then.
const ownThread = 0x7ead7ead

// A cond looks at the low word of one argument: equal to val after masking, or
// with any a bit of mask set, or one of the values in. not turns the first two round.
type cond struct {
	arg  int
	mask uint32 // 0: all bits
	val  uint32
	any  bool
	not  bool
	in   []uint32
}

// A clause answers then when every condition holds.
type clause struct {
	when []cond
	then uint32
}

// A rule decides one system call: the first clause that holds, else otherwise.
type rule struct {
	nr        uint32
	clauses   []clause
	otherwise uint32
}

// Offsets in struct seccomp_data.
const (
	offNr   = 0
	offArch = 4
	offArgs = 16
)

const (
	opLoad  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	OpAnd   = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
	OpJeq   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	opJge   = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	opJgt   = unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K
	OpJset  = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	OpJump  = unix.BPF_JMP | unix.BPF_JA
	OpRet   = unix.BPF_RET | unix.BPF_K
	noLabel = -1
)

// A program is BPF being written; labels are resolved by link.
type program struct {
	code   []unix.SockFilter
	labels []int       // position of each label
	jumps  map[int]int // position of a JA -> its label
}

func (p *program) emit(op uint16, k uint32, jt, jf uint8) {
	p.code = append(p.code, unix.SockFilter{Code: op, Jt: jt, Jf: jf, K: k})
}

func (p *program) newLabel() int {
	p.labels = append(p.labels, noLabel)
	return len(p.labels) - 1
}

func (p *program) place(label int) { p.labels[label] = len(p.code) }

func (p *program) jump(label int) {
	p.jumps[len(p.code)] = label
	p.emit(OpJump, 0, 0, 0)
}

func (p *program) link() []unix.SockFilter {
	for at, label := range p.jumps {
		p.code[at].K = uint32(p.labels[label] - at - 1)
	}
	return p.code
}

// assemble writes a filter for one architecture: calls of any other are refused
// as unknown, so are numbers above last, which did not exist when the rules were
// written. Everything that no rule names is allowed. The numbers are searched by
// halves, because the kernel runs the filter once per system call when it is
// installed.
func assemble(arch, last uint32, rules []rule) []unix.SockFilter {
	rules = append([]rule(nil), rules...)
	sort.Slice(rules, func(i, j int) bool { return rules[i].nr < rules[j].nr })
	p := &program{jumps: map[int]int{}}
	p.emit(opLoad, offArch, 0, 0)
	p.emit(OpJeq, arch, 1, 0)
	p.emit(OpRet, retErrno(unix.ENOSYS), 0, 0)
	p.emit(opLoad, offNr, 0, 0)
	p.emit(opJgt, last, 0, 1)
	p.emit(OpRet, retErrno(unix.ENOSYS), 0, 0)
	bodies := make([]int, len(rules))
	for i := range rules {
		bodies[i] = p.newLabel()
	}
	p.search(rules, bodies)
	for i, r := range rules {
		p.place(bodies[i])
		p.body(r)
	}
	return p.link()
}

func (p *program) search(rules []rule, bodies []int) {
	if len(rules) <= 3 {
		for i, r := range rules {
			p.emit(OpJeq, r.nr, 0, 1)
			p.jump(bodies[i])
		}
		p.emit(OpRet, retAllow, 0, 0)
		return
	}
	mid := len(rules) / 2
	right := p.newLabel()
	p.emit(opJge, rules[mid].nr, 0, 1)
	p.jump(right)
	p.search(rules[:mid], bodies[:mid])
	p.place(right)
	p.search(rules[mid:], bodies[mid:])
}

func (p *program) body(r rule) {
	for _, c := range r.clauses {
		p.clause(c)
	}
	p.emit(OpRet, r.otherwise, 0, 0)
}

// clause jumps past its own end as soon as a condition fails.
func (p *program) clause(c clause) {
	size := 1
	for _, k := range c.when {
		size += k.size()
	}
	end := len(p.code) + size
	for _, k := range c.when {
		p.emit(opLoad, uint32(offArgs+8*k.arg), 0, 0)
		if k.in != nil {
			p.oneOf(slices.Sorted(slices.Values(k.in)), end)
			continue
		}
		op, val := uint16(OpJeq), k.val
		if k.any {
			op, val = OpJset, k.mask
		} else if k.mask != 0 {
			p.emit(OpAnd, k.mask, 0, 0)
		}
		miss := uint8(end - len(p.code) - 1)
		if k.not {
			p.emit(op, val, miss, 0)
		} else {
			p.emit(op, val, 0, miss)
		}
	}
	p.emit(OpRet, c.then, 0, 0)
}

// fewValues are compared one by one, more are searched by halves.
const fewValues = 4

// oneOf goes on when the loaded word is one of the values, which are sorted, and
// to end when not.
func (p *program) oneOf(values []uint32, end int) {
	p.among(values, len(p.code)+searchSize(len(values)), end)
}

// among jumps to hit when the loaded word is one of the values, else to miss.
func (p *program) among(values []uint32, hit, miss int) {
	if len(values) > fewValues {
		mid := len(values) / 2
		p.emit(opJge, values[mid], uint8(searchSize(mid)), 0)
		p.among(values[:mid], hit, miss)
		p.among(values[mid:], hit, miss)
		return
	}
	for i, v := range values {
		next := len(p.code) + 1
		otherwise := 0
		if i == len(values)-1 {
			otherwise = miss - next
		}
		p.emit(OpJeq, v, uint8(hit-next), uint8(otherwise))
	}
}

// searchSize is how many instructions it takes to look among n values.
func searchSize(n int) int {
	if n <= fewValues {
		return n
	}
	return 1 + searchSize(n/2) + searchSize(n-n/2)
}

func (k cond) size() int {
	if !k.any && k.mask != 0 {
		return 3
	}
	return 1 + max(1, searchSize(len(k.in)))
}

// ForThread returns a copy of the filter with the thread's id filled in.
func ForThread(code []unix.SockFilter, tid int) []unix.SockFilter {
	out := append([]unix.SockFilter(nil), code...)
	for i := range out {
		if out[i].Code == OpJeq && out[i].K == ownThread {
			out[i].K = uint32(tid)
		}
	}
	return out
}
