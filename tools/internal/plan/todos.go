// Package plan holds the lists by which a model keeps track of its work.
//
// [Todos] is a list of tasks with ids that are ticked one by one; [Plan] is a
// list of steps that is replaced as a whole. Both may be used concurrently, and
// neither grows beyond [MaxBytes].
package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
)

// MaxBytes bounds a list, encoded as JSON: a result must be able to show it.
const MaxBytes = 131072

// A Todo is one task.
type Todo struct {
	ID        int64  `json:"id" doc:"Its number, from 0."`
	Title     string `json:"title" doc:"What is to be done."`
	Completed bool   `json:"completed" doc:"Whether it is done."`
}

// A TooLargeError is a list that would grow beyond MaxBytes.
type TooLargeError struct {
	What string // "todo list" or "plan"
	Size int    // bytes it would have
	Way  string // what to do, or ""
}

// Hint says what to do about it.
func (e *TooLargeError) Hint() string { return e.Way }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("The %s would have %d bytes, more than the %d allowed.", e.What, e.Size, MaxBytes)
}
func (*TooLargeError) Code() fault.Code { return fault.TooLarge }

// Todos is a list of tasks whose ids count from 0. The zero value is empty.
type Todos struct {
	mu   sync.Mutex
	list []Todo
	size int // bytes of the list as JSON, without its brackets
}

// Update appends tasks with the given titles, then ticks the tasks with the
// given ids. It returns the ids that do not exist, once each, in the order
// given. A *TooLargeError changes nothing.
func (t *Todos) Update(titles []string, done []int64) (unknown []int64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list, size := slices.Clone(t.list), t.size
	for _, title := range titles {
		task := Todo{ID: int64(len(list)), Title: title}
		list, size = append(list, task), size+encodedLen(task)
	}
	for _, id := range done {
		switch {
		case id < 0 || id >= int64(len(list)):
			if !slices.Contains(unknown, id) {
				unknown = append(unknown, id)
			}
		case !list[id].Completed:
			list[id].Completed = true
			size-- // true is shorter than false
		}
	}
	if total := size + len("[]"); total > MaxBytes {
		return nil, &TooLargeError{"todo list", total, "Start over with clearTodo."}
	}
	t.list, t.size = list, size
	return unknown, nil
}

// encodedLen is what a task adds to the list's JSON, a comma included.
func encodedLen(task Todo) int {
	raw, err := json.Marshal(task)
	if err != nil {
		panic(err) // no Todo fails to encode
	}
	return len(raw) + 1
}

// Clear empties the list; ids count from 0 again.
func (t *Todos) Clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list, t.size = nil, 0
}

// All returns the tasks by id; never nil.
func (t *Todos) All() []Todo {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]Todo{}, t.list...)
}

// Open returns the tasks that are not ticked, by id.
func (t *Todos) Open() (open []Todo) {
	for _, task := range t.All() {
		if !task.Completed {
			open = append(open, task)
		}
	}
	return open
}
