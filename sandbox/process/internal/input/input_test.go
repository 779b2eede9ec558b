package input

import (
	"errors"
	"io"
	"testing"
	"time"
)

// TestBounds: what waits is bounded, arrives in order, and nothing follows the end.
func TestBounds(t *testing.T) {
	read, write := io.Pipe()
	in := New(write, 4)
	if err := in.Write([]byte("abc"), false); err != nil {
		t.Fatal(err)
	}
	var full *FullError
	if err := in.Write([]byte("de"), false); !errors.As(err, &full) || *full != (FullError{Waiting: 3, Most: 4}) {
		t.Errorf("more than may wait: %v", err)
	}
	if err := in.Write([]byte("d"), true); err != nil || !in.Busy() {
		t.Errorf("as much as may: %v", err)
	}
	if err := in.Write([]byte("e"), false); !errors.Is(err, ErrEnded) {
		t.Errorf("after the end: %v", err)
	}
	if text, err := io.ReadAll(read); err != nil || string(text) != "abcd" {
		t.Errorf("the command reads %q, %v", text, err)
	}
}

// TestNobodyReads: that the command has closed its input is told to who writes next.
func TestNobodyReads(t *testing.T) {
	read, write := io.Pipe()
	in := New(write, 4)
	_ = read.Close()
	_ = in.Write([]byte("x"), false)
	for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(time.Millisecond) {
		if errors.Is(in.Write([]byte("x"), false), ErrEnded) {
			return
		}
	}
	t.Error("it is still written to")
}

// TestPutWaits: put returns when all can be read, and not before.
func TestPutWaits(t *testing.T) {
	read, write := io.Pipe()
	in := New(write, 4)
	got := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(read)
		got <- string(text)
	}()
	if err := in.Put([]byte("all of it"), true); err != nil {
		t.Fatal(err)
	}
	if text := <-got; text != "all of it" {
		t.Errorf("the command reads %q", text)
	}
	if err := in.Put([]byte("x"), false); !errors.Is(err, ErrEnded) {
		t.Errorf("after the end: %v", err)
	}
}
