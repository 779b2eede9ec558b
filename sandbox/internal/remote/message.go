package remote

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"
)

// A Type says what a message is.
type Type string

// The types; see the package for who sends which, and when.
const (
	TypeHello   Type = "hello"
	TypeWelcome Type = "welcome"
	TypeStdin   Type = "stdin"
	TypeRun     Type = "run"
	TypeStart   Type = "start"
	TypeStarted Type = "started"
	TypeCancel  Type = "cancel"
	TypeInput   Type = "input"
	TypeSignal  Type = "signal"
	TypeAsk     Type = "ask"
	TypeAnswer  Type = "answer"
	TypeTail    Type = "tail"
	TypeOutput  Type = "output"
	TypeResult  Type = "result"
	TypeFault   Type = "fault"
	TypeGone    Type = "gone"
	TypeClose   Type = "close"
	TypeBeat    Type = "beat"
)

// A Message is one frame.
type Message struct {
	Type     Type   `json:"type"`
	Command  uint64 `json:"command,omitempty"`  // its number
	Shell    uint64 `json:"shell,omitempty"`    // of a run, start or close
	Question uint64 `json:"question,omitempty"` // its number, which the answer repeats

	Hello   *Hello   `json:"hello,omitempty"`
	Welcome *Welcome `json:"welcome,omitempty"`
	Start   *Start   `json:"start,omitempty"` // of a run, too
	Result  *Result  `json:"result,omitempty"`
	Fault   *Fault   `json:"fault,omitempty"` // of an answer, too
	Needs   *Needs   `json:"needs,omitempty"`

	Stream int  `json:"stream,omitempty"` // of an output: 0 standard output, 1 standard error
	Last   bool `json:"last,omitempty"`   // of an output: belongs to the end that is kept; of an input: nothing follows
	Signal int  `json:"signal,omitempty"`

	Body []byte `json:"-"`
}

// Raw is text that need not be valid UTF-8, such as a path.
type Raw string

// MarshalJSON writes a string, or an object that holds the bytes.
func (r Raw) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(r)) {
		return json.Marshal(string(r))
	}
	return json.Marshal(rawBytes{[]byte(r)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *Raw) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '{' {
		var b rawBytes
		err := json.Unmarshal(text, &b)
		*r = Raw(b.Bytes)
		return err
	}
	return json.Unmarshal(text, (*string)(r))
}

type rawBytes struct {
	Bytes []byte `json:"bytes"`
}

// Raws are several.
func Raws(texts []string) []Raw {
	if texts == nil {
		return nil
	}
	raws := make([]Raw, len(texts))
	for i, text := range texts {
		raws[i] = Raw(text)
	}
	return raws
}

// Strings are they again.
func Strings(raws []Raw) []string {
	if raws == nil {
		return nil
	}
	texts := make([]string, len(raws))
	for i, raw := range raws {
		texts[i] = string(raw)
	}
	return texts
}

// A Hello tells the runner all that its commands have in common.
type Hello struct {
	Version   int             `json:"version"`
	Workspace Raw             `json:"workspace"`
	Tree      Raw             `json:"tree"`            // where private directories are made
	Cache     Raw             `json:"cache,omitempty"` // of the workspace, for this image
	Write     []Raw           `json:"write,omitempty"` // places that commands may write
	Env       []Raw           `json:"env,omitempty"`   // what the image's environment is completed by
	Sandbox   string          `json:"sandbox"`
	Network   string          `json:"network"`
	Settings  []File          `json:"settings,omitempty"` // for HOME
	Home      Raw             `json:"home,omitempty"`     // what stands in them for it
	Limits    json.RawMessage `json:"limits"`
	Quota     json.RawMessage `json:"quota"`            // which the container keeps
	Socket    Raw             `json:"socket,omitempty"` // a shorter way, for all that follows
	Token     string          `json:"token,omitempty"`  // what the runner says first there
}

// A File is one of a private directory.
type File struct {
	Name Raw    `json:"name"`
	Data []byte `json:"data"`
}

// A Welcome is the runner's word that it is ready.
type Welcome struct {
	Version  int    `json:"version"`
	Canary   string `json:"canary"`            // what it found in the tree
	Sees     bool   `json:"sees"`              // the workspace
	Confined string `json:"confined"`          // by which mechanism; "" for none
	Why      string `json:"why,omitempty"`     // none
	Failed   string `json:"failed,omitempty"`  // why it cannot run any command
	Unkept   string `json:"unkept,omitempty"`  // a limit that the engine has not set
	Machine  string `json:"machine,omitempty"` // GOOS/GOARCH
	Direct   bool   `json:"direct,omitempty"`  // what follows comes through hello's socket
}

// A Start is a command.
type Start struct {
	Name        Raw           `json:"name"`
	Args        []Raw         `json:"args,omitempty"`
	Path        Raw           `json:"path,omitempty"`
	Dir         Raw           `json:"dir,omitempty"`
	Set         []Raw         `json:"set,omitempty"` // variables, each as NAME=value
	Without     []Raw         `json:"without,omitempty"`
	Only        []Raw         `json:"only,omitempty"`
	Base        []Raw         `json:"base,omitempty"`
	HasBase     bool          `json:"hasBase,omitempty"`
	Startup     *Startup      `json:"startup,omitempty"`
	Stdin       bool          `json:"stdin,omitempty"` // there is some, perhaps nothing
	Stdout      bool          `json:"stdout,omitempty"`
	Stderr      bool          `json:"stderr,omitempty"`
	Tail        bool          `json:"tail,omitempty"`
	Keep        int           `json:"keep,omitempty"`
	Rows        uint16        `json:"rows,omitempty"` // both 0: no terminal
	Columns     uint16        `json:"columns,omitempty"`
	Terminal    bool          `json:"terminal,omitempty"`
	Read        []Raw         `json:"read,omitempty"`
	Write       []Raw         `json:"write,omitempty"`
	Timeout     time.Duration `json:"timeout,omitempty"`
	NoSurvivors bool          `json:"noSurvivors,omitempty"`
}

// A Startup is what a program reads first.
type Startup struct {
	Var   string `json:"var"`
	InDir bool   `json:"inDir,omitempty"`
	Files []File `json:"files"` // the first is the one that the program is led to
}

// A Result is how a command ended. What it wrote came before, as far as it is kept.
type Result struct {
	ExitCode  int           `json:"exitCode"`
	Signal    string        `json:"signal,omitempty"`
	TimedOut  bool          `json:"timedOut,omitempty"`
	Cancelled bool          `json:"cancelled,omitempty"`
	Total     [2]int64      `json:"total"`
	TextBytes [2]int64      `json:"textBytes"`
	Duration  time.Duration `json:"duration"`
	Refused   []string      `json:"refused,omitempty"`
}

// A Fault says why something was not done.
type Fault struct {
	Kind    string `json:"kind,omitempty"`  // start: of a program; path: of a directory; "" for any other
	Cause   string `json:"cause,omitempty"` // what the sandbox calls it, if it has a name
	Text    string `json:"text"`
	Command string `json:"command,omitempty"`
	What    string `json:"what,omitempty"`
	Hint    string `json:"hint,omitempty"`
}

// Needs is what a command that goes on waits for.
type Needs struct {
	Input bool `json:"input,omitempty"`
	Quiet bool `json:"quiet,omitempty"`
}

// Bounds of what a result says.
const (
	MaxRefused  = 64
	MaxSentence = 4096
	MaxTotal    = 1 << 60 // bytes of output: what is computed with them stays a number
)

// check refuses what no side may say: the kinds that miss their part, and numbers
// that mean nothing.
func (m *Message) check() error {
	has := map[Type]bool{
		TypeHello: m.Hello != nil, TypeWelcome: m.Welcome != nil, TypeRun: m.Start != nil, TypeStart: m.Start != nil,
		TypeResult: m.Result != nil, TypeFault: m.Fault != nil,
		TypeInput: m.Question != 0, TypeSignal: m.Question != 0, TypeAsk: m.Question != 0, TypeClose: m.Question != 0, TypeAnswer: m.Question != 0,
	}
	if ok, needs := has[m.Type]; needs && !ok {
		return fmt.Errorf("a frame of type %.32q without its part", m.Type)
	}
	if m.Stream < 0 || m.Stream > 1 {
		return fmt.Errorf("a frame for stream %d", m.Stream)
	}
	if r := m.Result; r != nil && !r.sound() {
		return fmt.Errorf("a result that cannot be: %.200v", *r)
	}
	return nil
}

func (r *Result) sound() bool {
	for i, total := range r.Total {
		// An invalid byte is three as text.
		if total < 0 || total > MaxTotal || r.TextBytes[i] < total || r.TextBytes[i] > 3*total {
			return false
		}
	}
	return r.Duration >= 0 && len(r.Refused) <= MaxRefused && len(r.Signal) <= 32 &&
		!slices.ContainsFunc(r.Refused, func(s string) bool { return len(s) > MaxSentence })
}
