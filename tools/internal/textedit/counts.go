package textedit

import (
	"io"
	"slices"
	"sync"
)

// versioned is a file that can tell its content from any other.
type versioned interface {
	// Version is a comparable value that another content does not have; ok is
	// false where that cannot be told.
	Version() (version any, ok bool)
}

// rememberBytes is from what size on counting the lines of a file again costs
// more than the rest of a call; rememberFiles is how many counts are kept, of 32 KB
// for each GB.
const (
	rememberBytes = 1 << 20
	rememberFiles = 16
)

// counts are the line ends of the large files that were read last: a reader of a
// log asks again, and to say how many lines it has all of it must have been counted.
// What a program writes through a shared mapping shows in the times of a file only
// when the kernel writes it back; until then an answer may count too few lines.
var counts struct {
	sync.Mutex
	kept []count // least recently used first
}

// A count is the line ends before each block of one version of a file.
type count struct {
	version any
	ends    ends
	before  []int64 // only ever appended to
}

// recall gives the index what is known of this version of the file.
func (x *index) recall(r io.ReaderAt) {
	file, ok := r.(versioned)
	if !ok || x.size < rememberBytes {
		return
	}
	if x.version, ok = file.Version(); !ok {
		x.version = nil
		return
	}
	counts.Lock()
	defer counts.Unlock()
	if i := x.kept(); i >= 0 {
		before := counts.kept[i].before
		x.before = before[:len(before):len(before)] // to append is to copy
	}
}

// remember keeps what was counted. Call it when more was.
func (x *index) remember() {
	if x.version == nil {
		return
	}
	counts.Lock()
	defer counts.Unlock()
	known := count{x.version, x.ends, x.before}
	if i := x.kept(); i >= 0 {
		if old := counts.kept[i].before; len(old) > len(known.before) {
			known.before = old
		}
		counts.kept = slices.Delete(counts.kept, i, i+1)
	} else if len(counts.kept) == rememberFiles {
		counts.kept = slices.Delete(counts.kept, 0, 1)
	}
	counts.kept = append(counts.kept, known)
}

// kept is where the counts of x's version are, -1 for nowhere.
func (x *index) kept() int {
	return slices.IndexFunc(counts.kept, func(c count) bool { return c.version == x.version && c.ends == x.ends })
}
