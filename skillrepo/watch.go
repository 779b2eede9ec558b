package skillrepo

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"
)

// pollEvery is how often the disk is looked at. A scan that finds nothing new
// costs one listing per directory and one stat per skill; unlike file system
// events it also sees what happens behind links, in container mounts, on network
// file systems, and in roots that do not exist yet.
const pollEvery = time.Second

// Watch keeps the snapshot up with the disk until the context ends, and calls
// onChange after the set of skills, a name or a description changed, whoever
// noticed it first. The call comes within two seconds of the change.
func (r *Repo) Watch(ctx context.Context, onChange func()) {
	told := r.snap.Load().fingerprint()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if r.Refresh(ctx) != nil {
			continue // only the context's end, seen above
		}
		if now := r.snap.Load().fingerprint(); now != told {
			told = now
			onChange()
		}
	}
}

// fingerprint changes with what clients are shown of all skills.
func (s *snapshot) fingerprint() [sha256.Size]byte {
	h := sha256.New()
	for _, skill := range s.skills {
		_, _ = fmt.Fprintf(h, "%q %q\n", skill.Name, skill.Description)
	}
	return [sha256.Size]byte(h.Sum(nil))
}
