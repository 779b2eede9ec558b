package skillrepo

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"
)

// How often the disk is looked at. A scan that finds nothing new
// costs one listing per directory and one stat per skill; unlike file system
// events it also sees what happens behind links, in container mounts, on network
// file systems, and in roots that do not exist yet.
// Looking after one skill takes some 30 us: with pollSkill looks take one percent
// of a core, however many skills there are.
const (
	pollEvery = time.Second             // but for more skills than 320
	pollSkill = 3125 * time.Microsecond // for each skill
	pollMost  = 30 * time.Second
)

// Watch keeps the snapshot up with the disk until the context ends, and calls
// onChange after the set of skills, a name or a description changed, whatever
// noticed it first. The call comes within two seconds of the change, later only
// with more than 320 skills.
func (r *Repo) Watch(ctx context.Context, onChange func()) {
	last := r.snap.Load()
	told := last.fingerprint()
	timer := time.NewTimer(pollEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		err := r.Refresh(ctx)
		now := r.snap.Load()
		timer.Reset(pause(len(now.skills)))
		if err != nil || slices.Equal(now.skills, last.skills) {
			continue // an unchanged skill is the same one in every snapshot
		}
		last = now
		if print := now.fingerprint(); print != told {
			told = print
			onChange()
		}
	}
}

// pause is the time until the next look, with so many skills known.
func pause(skills int) time.Duration {
	return min(max(pollEvery, time.Duration(skills)*pollSkill), pollMost)
}

// fingerprint changes with what clients are shown of all skills.
func (s *snapshot) fingerprint() [sha256.Size]byte {
	h := sha256.New()
	for _, skill := range s.skills {
		_, _ = fmt.Fprintf(h, "%q %q\n", skill.Name, skill.Description)
	}
	return [sha256.Size]byte(h.Sum(nil))
}
