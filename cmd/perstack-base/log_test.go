package main

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestNobodyWaitsForTheLog: lines that nobody takes are dropped and counted, and the
// rest are written in order once somebody does.
func TestNobodyWaitsForTheLog(t *testing.T) {
	for name, note := range map[string]func(int) []byte{"text": stderr.note, "json": droppedJSON} {
		t.Run(name, func(t *testing.T) {
			read, write := io.Pipe()
			stuck := make(chan struct{})
			begun := sync.OnceFunc(func() { close(stuck) })
			q := newLineQueue(writerFunc(func(b []byte) (int, error) { begun(); return write.Write(b) }), note)
			const count = 30000
			line := strings.Repeat("x", 90)
			for i := range count {
				fmt.Fprintf(q, "%05d %s\n", i, line)
				<-stuck // nobody takes the first, so the others fill the queue
			}
			q.mu.Lock()
			dropped, waiting := q.dropped, len(q.waiting)
			q.mu.Unlock()
			if dropped == 0 || waiting > logKept {
				t.Fatalf("%d lines were dropped, %d bytes wait: nothing is proven", dropped, waiting)
			}
			got := make(chan string)
			go func() {
				all, _ := io.ReadAll(read)
				got <- string(all)
			}()
			whole(q)
			fmt.Fprintln(q, "after")
			whole(q)
			write.Close()
			lines := strings.Split(strings.TrimSuffix(<-got, "\n"), "\n")
			notes := 0
			for i, line := range lines[:len(lines)-1] {
				if strings.Contains(line, "dropped") {
					notes++
				} else if n := 0; i < 100 {
					if _, err := fmt.Sscanf(line, "%d", &n); err != nil || n != i {
						t.Errorf("line %d is %.20q", i, line)
					}
				}
			}
			if notes != 1 || lines[len(lines)-1] != "after" {
				t.Errorf("%d notes, and at the end %q", notes, lines[len(lines)-1])
			}
		})
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// whole waits until all is written, however long it takes.
func whole(q *lineQueue) {
	q.mu.Lock()
	idle := q.idle
	q.mu.Unlock()
	if idle != nil {
		<-idle
	}
}

// TestTheEndWaitsBriefly: nobody reads, and the process ends all the same.
func TestTheEndWaitsBriefly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read, write := io.Pipe()
		defer read.Close()
		q := newLineQueue(write, stderr.note)
		q.flush()
		fmt.Fprintln(q, "lost")
		begun := time.Now()
		q.flush()
		if took := time.Since(begun); took != logFlush {
			t.Errorf("it waits for %v, not for %v", took, logFlush)
		}
	})
}

func BenchmarkLog(b *testing.B) {
	log := slog.New(slog.NewTextHandler(newLineQueue(io.Discard, stderr.note), nil))
	for b.Loop() {
		log.Info("call", "tool", "exec", "ms", 1.5, "outcome", "ok", "bytes", 100)
	}
}
