package dispatch

import "github.com/perstack-ai/perstack-base/tools"

// Sessions makes what the tools keep for a client.
type Sessions interface {
	// Open makes the session of one connection; end drops it.
	Open(id string) (session *tools.Session, end func())
	// OpenCall makes the session of a single call that nothing comes before or after.
	OpenCall() (session *tools.Session, end func())
}
