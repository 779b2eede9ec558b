package process

import (
	"errors"
	"os"
	"slices"
	"syscall"

	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// leave has a command count as ended, and reports whether it may leave processes running,
// should it not be over. Those of each command take descriptors and a thread of the server.
func (s *Shell) leave(j *job, over bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, j)
	if over {
		return true
	}
	s.left = append(s.left, j)
	return len(s.left) <= min(s.c.limits.LeftCommands, proc.DescriptorShare(leftShare))
}

// leftShare is the part of the server's descriptors that what a session's commands have
// left running may take, with some for each.
const leftShare = 16

// tooManyLeft is what a command is told that may not leave anything running.
const tooManyLeft = "ended what the command left running: as many commands of this session as may have left processes running already; end some of those (ps shows them, kill ends them)"

// prune lets go of commands whose survivors have ended.
func (s *Shell) prune() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = slices.DeleteFunc(s.left, func(j *job) bool {
		if !j.over() {
			return false
		}
		j.tree.Release()
		return true
	})
}

// commandRoom leaves descriptors for tools that read and write files, and to answer, when
// commands have taken the others.
func commandRoom(open *os.File) error { return proc.DescriptorRoom(open, 64, 8) }

// noCommandRoom makes it plain when a command was not started for want of descriptors.
func noCommandRoom(err error) error {
	var room *NoRoomError
	if errors.As(err, &room) || !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE) {
		return err
	}
	return &NoRoomError{Err: err, Command: true}
}
