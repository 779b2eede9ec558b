package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// BenchmarkPoll is a look at a command that is silent, and beside it in turn a call that
// does nothing: one after the other at once, when the kernel's word on the command still
// holds; after a rest, when the kernel is asked again; and each right after the end of
// another command.
func BenchmarkPoll(b *testing.B) {
	line := func(tool, args string) []byte {
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`+"\n", tool, args)
	}
	command := line("exec_command", `{"cmd":"true"}`)
	for _, mode := range []string{"isolate", "landlock"} {
		c, _ := startRaw(b, workspace(b), "serve", "--tools", "perstack,terminal", "--sandbox", mode)
		c.call(b, line("exec_command", `{"cmd":"exec sleep 86400","yield_time_ms":250}`))
		calls := [...][]byte{line("todo", `{}`), line("write_stdin", `{"session_id":"c1","yield_time_ms":0}`)}
		for _, before := range []struct {
			name string
			do   func()
		}{
			{"at-once", func() {}},
			{"after-a-rest", func() { time.Sleep(60 * time.Millisecond) }},
			{"after-a-command", func() { c.call(b, command) }},
		} {
			b.Run(mode+"/"+before.name, func(b *testing.B) {
				var took [len(calls)][]time.Duration
				for b.Loop() {
					for i, call := range calls {
						before.do()
						begun := time.Now()
						c.call(b, call)
						took[i] = append(took[i], time.Since(begun))
					}
				}
				todo, poll := median(took[0]), median(took[1])
				b.ReportMetric(float64(todo.Microseconds()), "todo-µs")
				b.ReportMetric(float64(poll.Microseconds()), "poll-µs")
				b.ReportMetric(float64(poll)/float64(todo), "poll/todo")
			})
		}
	}
}

func median(of []time.Duration) time.Duration {
	slices.Sort(of)
	return of[len(of)/2]
}
