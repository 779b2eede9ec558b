package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
)

func TestTodos(t *testing.T) {
	var list Todos
	steps := []struct {
		titles  []string
		done    []int64
		unknown []int64
		want    string
	}{
		{nil, nil, nil, `[]`},
		{[]string{"a", "", "a"}, nil, nil, `[{"id":0,"title":"a","completed":false},{"id":1,"title":"","completed":false},{"id":2,"title":"a","completed":false}]`},
		{nil, []int64{1, 1, -1, 9, -1}, []int64{-1, 9}, `[{"id":0,"title":"a","completed":false},{"id":1,"title":"","completed":true},{"id":2,"title":"a","completed":false}]`},
		{[]string{"b"}, []int64{3, 0, 2}, nil, `[{"id":0,"title":"a","completed":true},{"id":1,"title":"","completed":true},{"id":2,"title":"a","completed":true},{"id":3,"title":"b","completed":true}]`},
	}
	for i, step := range steps {
		unknown, err := list.Update(step.titles, step.done)
		got, _ := json.Marshal(list.All())
		if err != nil || !reflect.DeepEqual(unknown, step.unknown) || string(got) != step.want {
			t.Errorf("step %d: %v, %v, %s", i, unknown, err, got)
		}
	}
	if open := list.Open(); open != nil {
		t.Errorf("open: %v", open)
	}
	list.Clear()
	if _, err := list.Update([]string{"new"}, nil); err != nil || list.Open()[0].ID != 0 {
		t.Error("ids must count from 0 after Clear")
	}
}

// TestTodosAreBounded fills a list to the last byte and not one further.
func TestTodosAreBounded(t *testing.T) {
	var list Todos
	titles := make([]string, 1000)
	for i := range titles {
		titles[i] = strings.Repeat(`é"<`, i%7)
	}
	var large *TooLargeError
	var before []Todo
	for {
		before = list.All()
		if _, err := list.Update(titles, []int64{int64(len(before))}); err != nil {
			if !errors.As(err, &large) || !reflect.DeepEqual(before, list.All()) {
				t.Fatalf("%v; the list changed from %d to %d", err, len(before), len(list.All()))
			}
			break
		}
	}
	raw, _ := json.Marshal(before)
	fits := MaxBytes - len(raw) - encodedLen(Todo{ID: int64(len(before))})
	if _, err := list.Update([]string{strings.Repeat("x", fits-1)}, nil); err != nil {
		t.Errorf("a list of %d bytes must fit: %v", MaxBytes, err)
	}
	if _, err := list.Update([]string{""}, nil); !errors.As(err, &large) {
		t.Errorf("one more must not fit: %v", err)
	}
}

func TestTodosConcurrently(t *testing.T) {
	var list Todos
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			if _, err := list.Update([]string{fmt.Sprint(i)}, nil); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	seen := map[string]bool{}
	for id, task := range list.All() {
		if task.ID != int64(id) || seen[task.Title] {
			t.Errorf("task %d is %+v", id, task)
		}
		seen[task.Title] = true
	}
	if len(seen) != 50 {
		t.Errorf("%d tasks", len(seen))
	}
}

func TestPlan(t *testing.T) {
	var p Plan
	steps := []Step{{"Read", Completed}, {"Write\r\nit\nall\rdown", InProgress}, {"Test", Pending}}
	if err := p.Replace(steps); err != nil || !reflect.DeepEqual(p.Steps(), steps) {
		t.Fatal(err, p.Steps())
	}
	want := "  [x] 1. Read\n  [>] 2. Write it all down\n  [ ] 3. Test"
	if got := Render(p.Steps()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	var blank *BlankError
	if err := p.Replace([]Step{{"a", Pending}, {" \t", Pending}}); !errors.As(err, &blank) || blank.Index != 1 {
		t.Error(err)
	}
	var large *TooLargeError
	if err := p.Replace([]Step{{strings.Repeat("x", MaxBytes), Pending}}); !errors.As(err, &large) {
		t.Error(err)
	}
	if !reflect.DeepEqual(p.Steps(), steps) {
		t.Error("an error changed the plan")
	}
	if err := p.Replace(nil); err != nil || len(p.Steps()) != 0 {
		t.Error("an empty plan clears:", err)
	}
}
