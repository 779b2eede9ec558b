package confine

// timesArg returns where a call keeps its times.
func (q *question) timesArg() uint64 { return q.args[2] }
