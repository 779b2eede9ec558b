package proc

// A Process is one line of the system's table of processes.
type Process struct {
	PID, Parent, Group, Session int

	Threads int
	Born    uint64 // in ticks since boot, as Ticks counts
	Dead    bool   // it runs no code of its own any more
	Stopped bool   // by a signal or a tracer
}
