package selftest

// A Check is one promise of the sandbox: whether trying showed it to hold, and
// what was tried or why it does not.
type Check struct {
	Proven bool   `json:"proven"`
	Detail string `json:"detail"`
}

// A Tier is the mechanism that confines commands.
type Tier string

// The tiers.
const (
	Threads    Tier = "threads"    // Landlock, a seccomp filter and its broker: a [Confiner]
	Namespaces Tier = "namespaces" // a view of the machine that holds nothing else: an [Isolator]
)

// A Status says what was proven here. Nothing is claimed that was not tried.
type Status struct {
	Tier        Tier  `json:"tier"`
	LandlockABI int   `json:"landlockAbi"` // 0: none
	Seccomp     bool  `json:"seccomp"`     // the filter is in force
	Broker      bool  `json:"broker"`      // questions reach the server
	Injected    bool  `json:"injected"`    // the broker makes sockets, because it cannot duplicate them
	Files       Check `json:"files"`       // a file outside cannot be read
	Network     Check `json:"network"`     // a socket to the outside cannot be opened
	Signals     Check `json:"signals"`     // a process outside cannot be signalled
	Kill        Check `json:"kill"`        // every process of a command can be ended

	err error // why nothing could be tried
}

// Enforced reports whether commands are confined: what lies outside is out of
// their reach.
func (s Status) Enforced() bool { return s.Files.Proven && s.Network.Proven && s.Signals.Proven }
