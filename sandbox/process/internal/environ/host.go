package environ

import (
	"io"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
)

// MaxHostFile is the size of the largest file of the host that is copied for commands.
const MaxHostFile = 1 << 20

// ReadHost reads a file of the host's; a missing one is no failure.
func ReadHost(p policy.Policy, path string) ([]byte, bool) {
	file, err := p.Reach(path)
	if err != nil {
		return nil, false
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, MaxHostFile+1))
	return data, err == nil && len(data) <= MaxHostFile
}
