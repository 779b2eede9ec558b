package policy

import "golang.org/x/sys/unix"

// What the walks of one look-up have met are the directories on their ways: nearly all
// come through the same ones. They stay open until its end, so a walk that goes on from one
// is as good as one that has taken its time there.
type met struct {
	root *dir
	open int
}

// A dir is one of them.
type dir struct {
	fd    int
	id    FileID
	above *dir
	below map[string]*dir
}

// maxMet bounds how many are kept open.
const maxMet = 64

// top is the root, nil before it was met.
func (m *met) top() *dir {
	if m == nil {
		return nil
	}
	return m.root
}

// keep takes over the descriptor of a directory that bears a name in one that was met, or
// of the root. It returns nil where it does not.
func (m *met) keep(above *dir, name string, fd int, id FileID) *dir {
	if m == nil || m.open == maxMet || above == nil && m.root != nil {
		return nil
	}
	m.open++
	d := &dir{fd: fd, id: id, above: above, below: map[string]*dir{}}
	if above == nil {
		m.root = d
	} else {
		above.below[name] = d
	}
	return d
}

// close lets go of them.
func (m *met) close() {
	if m.root != nil {
		m.root.close()
	}
	*m = met{}
}

func (d *dir) close() {
	for _, below := range d.below {
		below.close()
	}
	unix.Close(d.fd)
}
