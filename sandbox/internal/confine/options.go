package confine

// Options tune a Confiner. The zero value is good.
type Options struct {
	// Spare is how many threads are kept confined ahead of time; 0 means 2,
	// negative none. They are made after the first command, never before.
	Spare int
}
