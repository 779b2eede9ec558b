package sandbox

// A Quota bounds what the commands of one session may use together. A field that
// is zero asks for no bound.
type Quota struct {
	MaxMemory    int64   // bytes, shared memory and files in memory included
	MaxProcesses int     // processes and threads
	MaxCPUs      float64 // processors' worth of time: 0.5 is half of one
}
