package tools

import (
	"context"
	"errors"
	"regexp"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
)

var notes = NewState(func() *[]string { return &[]string{} }).Lists("Todo list", "todo", "todo_")

func oneCall() context.Context {
	s := NewSession("", nil)
	s.OneCall = true
	return WithSession(context.Background(), s)
}

func TestFindKeepsWhatASessionHas(t *testing.T) {
	env := &Env{}
	ctx := WithSession(context.Background(), NewSession("a", nil))
	first, id, err := notes.Find(ctx, env, "")
	if err != nil || id != "" {
		t.Fatal(id, err)
	}
	*first = append(*first, "x")
	if again, _, _ := notes.Find(ctx, env, ""); len(*again) != 1 || notes.Of(ctx) != again {
		t.Error("the session has two lists")
	}
}

func TestFindByID(t *testing.T) {
	env := &Env{}
	made, id, err := notes.Find(oneCall(), env, "")
	if err != nil || !regexp.MustCompile(`^todo_[\w-]{22}$`).MatchString(id) {
		t.Fatal(id, err)
	}
	found, second, err := notes.Find(oneCall(), env, id)
	if err != nil || second != "" || found != made {
		t.Error("the list of an id is another one:", second, err)
	}
	if other, otherID, _ := notes.Find(oneCall(), env, ""); other == made || otherID == id {
		t.Error("a new list is not new")
	}
	var refused *Error
	if _, _, err := notes.Find(oneCall(), env, "todo_x"); !errors.As(err, &refused) || refused.Code != fault.NotFound {
		t.Error("an unknown id:", err)
	}
	if _, _, err := notes.Find(oneCall(), &Env{}, id); err == nil {
		t.Error("another server knows the id")
	}
}

func TestLookStartsNothing(t *testing.T) {
	env := &Env{}
	if got := notes.Look(oneCall(), env, ""); len(*got) != 0 || env.lists.ages.Len() != 0 {
		t.Error("looking made a list")
	}
	made, id, _ := notes.Find(oneCall(), env, "")
	if notes.Look(oneCall(), env, id) != made {
		t.Error("looking found another list")
	}
}

func TestHandlesExpire(t *testing.T) {
	now := time.Unix(0, 0)
	h := &handles{now: func() time.Time { return now }}
	id, _ := h.create("x")
	now = now.Add(handleLife - time.Second)
	if h.find(id) == nil {
		t.Fatal("expired early")
	}
	now = now.Add(handleLife - time.Second)
	if h.find(id) == nil {
		t.Fatal("a use does not count")
	}
	now = now.Add(handleLife)
	if h.find(id) != nil {
		t.Error("not expired")
	}
}

func TestHandlesAreBounded(t *testing.T) {
	h := &handles{}
	first, _ := h.create("x")
	second, _ := h.create("x")
	for range maxHandles - 1 {
		h.find(first)
		h.create("x")
	}
	if h.find(first) == nil || h.find(second) != nil || len(h.byID) != maxHandles || h.ages.Len() != maxHandles {
		t.Errorf("%d handles, the used one is there: %v", len(h.byID), h.find(first) != nil)
	}
}
