package broker

// timesArg returns where a call keeps its times.
func (q *Question) timesArg() uint64 { return q.args[2] }
