package threads

import "github.com/perstack-ai/perstack-base/sandbox/internal/network"

// Options tune a Confiner. The zero value is good.
type Options struct {
	// Spare is how many threads are kept confined ahead of time; 0 means 2,
	// negative none. They are made after the first command, never before.
	Spare int
	// Gate is the session's way out of a network that the policy closes, nil for none.
	// Its owner closes it, after the Confiner.
	Gate *network.Gate
}
