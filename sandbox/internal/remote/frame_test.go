package remote

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

// messages are one of each that has parts.
var messages = []*Message{
	{Type: TypeBeat},
	{Type: TypeHello, Hello: &Hello{Version: Version, Workspace: "/w\xff", Limits: []byte(`{}`), Quota: []byte(`{}`), Settings: []File{{"a", []byte("b\x00")}}}},
	{Type: TypeWelcome, Welcome: &Welcome{Version: Version, Canary: "c", Sees: true}},
	{Type: TypeRun, Command: 1, Shell: 2, Start: &Start{Name: "sh", Args: []Raw{"-c", "\xfe{"}, Set: []Raw{"A=b"}, Timeout: time.Second}},
	{Type: TypeOutput, Command: 1, Stream: 1, Last: true, Body: []byte("x\x00y")},
	{Type: TypeResult, Command: 1, Result: &Result{ExitCode: 3, Total: [2]int64{9, 1}, TextBytes: [2]int64{27, 1}, Refused: []string{"no"}}},
	{Type: TypeFault, Command: 1, Fault: &Fault{Kind: "start", Text: "gone"}},
	{Type: TypeAnswer, Question: 7, Needs: &Needs{Input: true}},
}

func TestFramesComeBack(t *testing.T) {
	var stream bytes.Buffer
	w, r := NewWriter(&stream, MaxFromServer), NewReader(&stream, MaxFromServer)
	for _, m := range messages {
		if err := w.Write(m); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range messages {
		got, err := r.Read()
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%+v %v, want %+v", got, err, m)
		}
	}
	if _, err := r.Read(); err != io.EOF {
		t.Error(err)
	}
}

func TestManyWriters(t *testing.T) {
	read, write := io.Pipe()
	w, r := NewWriter(write, MaxFromRunner), NewReader(read, MaxFromRunner)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				_ = w.Write(&Message{Type: TypeOutput, Command: 1, Body: bytes.Repeat([]byte{'x'}, 1000)})
			}
		})
	}
	go func() { all.Wait(); write.Close() }()
	n := 0
	for m, err := r.Read(); err != io.EOF; m, err = r.Read() {
		if err != nil || len(m.Body) != 1000 {
			t.Fatal(err)
		}
		n++
	}
	if n != 400 {
		t.Errorf("%d of 400", n)
	}
}

func TestTooLarge(t *testing.T) {
	w := NewWriter(io.Discard, 1000)
	for _, m := range []*Message{
		{Type: TypeRun, Start: &Start{Name: Raw(strings.Repeat("x", 1000))}},
		{Type: TypeOutput, Body: make([]byte, MaxBody+1)},
	} {
		if err := w.Write(m); !errors.Is(err, ErrTooLarge) {
			t.Error(err)
		}
	}
}

// TestHostileFrames: what no runner may say ends the stream, and takes no memory that
// did not come.
func TestHostileFrames(t *testing.T) {
	frame := func(text, body string) string {
		b := binary.BigEndian.AppendUint32(nil, uint32(len(text)))
		b = binary.BigEndian.AppendUint32(b, uint32(len(body)))
		return string(b) + text + body
	}
	for name, bytes := range map[string]string{
		"header too long":   "\xff\xff\xff\xff\x00\x00\x00\x00",
		"body too long":     "\x00\x00\x00\x02\xff\xff\xff\xff{}",
		"cut":               frame(`{"type":"beat"}`, "x")[:10],
		"body cut":          "\x00\x00\x00\x0f\x00\x00\x10\x00" + `{"type":"beat"}` + "x",
		"no JSON":           frame("{", ""),
		"an array":          frame("[1]", ""),
		"no result":         frame(`{"type":"result"}`, ""),
		"no question":       frame(`{"type":"answer"}`, ""),
		"stream 2":          frame(`{"type":"output","stream":2}`, ""),
		"stream -1":         frame(`{"type":"output","stream":-1}`, ""),
		"negative total":    frame(`{"type":"result","result":{"total":[-1,0]}}`, ""),
		"too large a total": frame(`{"type":"result","result":{"total":[1152921504606846977,0],"textBytes":[1152921504606846977,0]}}`, ""),
		"less text":         frame(`{"type":"result","result":{"total":[2,0],"textBytes":[1,0]}}`, ""),
		"more text":         frame(`{"type":"result","result":{"total":[1,0],"textBytes":[100,0]}}`, ""),
		"negative duration": frame(`{"type":"result","result":{"duration":-1}}`, ""),
		"long signal":       frame(`{"type":"result","result":{"signal":"`+strings.Repeat("x", 100)+`"}}`, ""),
		"many refusals":     frame(`{"type":"result","result":{"refused":[`+strings.Repeat(`"",`, 100)+`""]}}`, ""),
		"long refusal":      frame(`{"type":"result","result":{"refused":["`+strings.Repeat(`x`, MaxSentence+1)+`"]}}`, ""),
	} {
		if m, err := NewReader(strings.NewReader(bytes), MaxFromRunner).Read(); err == nil || err == io.EOF {
			t.Errorf("%s: %+v %v", name, m, err)
		}
	}
}

// FuzzRead: whatever comes, Read ends, and what it takes for a message is within
// bounds and comes back the same.
func FuzzRead(f *testing.F) {
	for _, m := range messages {
		var b bytes.Buffer
		if err := NewWriter(&b, MaxFromServer).Write(m); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := NewReader(bytes.NewReader(stream), MaxFromRunner)
		for {
			m, err := r.Read()
			if err != nil {
				return
			}
			if len(m.Body) > MaxBody || m.Stream < 0 || m.Stream > 1 || m.Result != nil && !m.Result.sound() {
				t.Fatalf("%+v", m)
			}
			var again bytes.Buffer
			if err := NewWriter(&again, MaxFromServer).Write(m); err != nil {
				t.Fatal(err)
			}
			if back, err := NewReader(&again, MaxFromServer).Read(); err != nil || back.Type != m.Type || !bytes.Equal(back.Body, m.Body) {
				t.Fatalf("%+v %v", back, err)
			}
		}
	})
}
