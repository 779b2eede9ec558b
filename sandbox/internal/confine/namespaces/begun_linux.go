//go:build amd64 || arm64

package namespaces

import (
	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
)

// A Begun is the namespaces of a session that hold nothing yet, and the process that will
// fill them. Making these takes as long as finding out what they are to hold, so it
// is begun before.
type Begun struct {
	made   chan struct{} // closed: the rest is set
	keeper *Keeper
	mounts *stage
	err    error
	taken  bool
}

// Begin begins to make namespaces, whose network is the machine's if it is open. It
// returns at once; [New] takes them, or [Begun.Close] gives them back.
func Begin(network bool) *Begun {
	spaces := uintptr(unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC)
	if !network {
		spaces |= unix.CLONE_NEWNET
	}
	b := &Begun{made: make(chan struct{})}
	go func() {
		defer close(b.made)
		b.make(spaces)
	}()
	return b
}

func (b *Begun) make(spaces uintptr) {
	if b.err = kernel.PrepareProcess(); b.err != nil {
		return
	}
	if b.keeper, b.err = newKeeper(spaces); b.err != nil {
		return
	}
	if b.mounts, b.err = b.keeper.beginStage(); b.err != nil {
		b.keeper.close()
		b.keeper = nil
	}
}

// Await waits until they are made, or cannot be: what has time can wait for that.
func (b *Begun) Await() {
	if b != nil {
		<-b.made
	}
}

// take waits until they are made, for the one who fills them.
func (b *Begun) take() (*Keeper, *stage, error) {
	<-b.made
	b.taken = true
	return b.keeper, b.mounts, b.err
}

// Close gives them back, unless New has taken them. It does not wait.
func (b *Begun) Close() {
	if b == nil || b.taken {
		return
	}
	go func() {
		<-b.made
		if b.err == nil {
			b.mounts.close()
			b.keeper.close()
		}
	}()
}
