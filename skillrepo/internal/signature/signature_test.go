package signature

import (
	"fmt"
	"testing"
	"time"
)

func TestSettled(t *testing.T) {
	at := time.Unix(1000, 500)
	tests := []struct {
		name   string
		sig    Signature
		after  time.Duration
		settle bool
	}{
		{"at once", Signature{ctime: at.UnixNano()}, time.Millisecond, false},
		{"past the step of a clock", Signature{ctime: at.UnixNano()}, 25 * time.Millisecond, true},
		{"a future modification time says nothing", Signature{ctime: at.UnixNano(), mtime: at.Add(time.Hour).UnixNano()}, 25 * time.Millisecond, true},
		{"without a change time", Signature{mtime: at.UnixNano()}, 25 * time.Millisecond, true},
		{"whole seconds", Signature{mtime: time.Unix(1000, 0).UnixNano()}, time.Second, false},
		{"whole seconds, later", Signature{mtime: time.Unix(1000, 0).UnixNano()}, 3 * time.Second, true},
		{"read before it changed", Signature{ctime: at.UnixNano()}, -time.Second, false},
	}
	for _, tt := range tests {
		if got := tt.sig.Settled(at.Add(tt.after)); got != tt.settle {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

func TestHashMemory(t *testing.T) {
	var m Memory
	old := Signature{size: 1, mtime: 1, ctime: 1}
	m.Put("a", old, time.Now(), Hash{1})
	if h, ok := m.Get("a", old); !ok || h != (Hash{1}) {
		t.Error("forgotten")
	}
	if _, ok := m.Get("a", Signature{size: 2, mtime: 1, ctime: 1}); ok {
		t.Error("remembered for another state")
	}
	fresh := Signature{ctime: time.Now().UnixNano()}
	m.Put("b", fresh, time.Now(), Hash{2})
	if _, ok := m.Get("b", fresh); ok {
		t.Error("remembered what may still change unseen")
	}
	for i := range maxRemembered {
		m.Put(fmt.Sprint(i), old, time.Now(), Hash{})
	}
	if len(m.m) > maxRemembered {
		t.Errorf("%d hashes", len(m.m))
	}
}
