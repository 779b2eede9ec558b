package plan

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
)

// A Status says how far a step is.
type Status string

// The statuses.
const (
	Pending    Status = "pending"
	InProgress Status = "in_progress"
	Completed  Status = "completed"
)

var marks = map[Status]string{Pending: "[ ]", InProgress: "[>]", Completed: "[x]"}

// A Step is one step of a plan.
type Step struct {
	Description string
	Status      Status
}

// A BlankError is a step without a description. Index counts from 0.
type BlankError struct{ Index int }

func (e *BlankError) Error() string  { return fmt.Sprintf("step %d has no description", e.Index) }
func (*BlankError) Code() fault.Code { return fault.BadInput }

// A Plan is a list of steps that is replaced as a whole. The zero value is empty.
type Plan struct {
	mu    sync.Mutex
	steps []Step
}

// Replace sets all steps. A *BlankError or *TooLargeError changes nothing.
func (p *Plan) Replace(steps []Step) error {
	for i, step := range steps {
		if strings.TrimSpace(step.Description) == "" {
			return &BlankError{i}
		}
	}
	raw, err := json.Marshal(steps)
	if err != nil {
		return err
	}
	if len(raw) > MaxBytes {
		return &TooLargeError{What: "plan", Size: len(raw)}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steps = append([]Step(nil), steps...)
	return nil
}

// Steps returns the steps in order.
func (p *Plan) Steps() []Step {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Step(nil), p.steps...)
}

// Render shows steps one a line, numbered from 1: `  [x] 1. Read existing code`.
// A line break within a description becomes one blank.
func Render(steps []Step) string {
	lines := make([]string, len(steps))
	for i, step := range steps {
		lines[i] = fmt.Sprintf("  %s %d. %s", marks[step.Status], i+1, OneLine(step.Description))
	}
	return strings.Join(lines, "\n")
}

// OneLine replaces each line break (LF, CRLF, CR) by one blank.
func OneLine(text string) string {
	return strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ").Replace(text)
}
