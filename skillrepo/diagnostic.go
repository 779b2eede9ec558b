package skillrepo

import "fmt"

// A Diagnostic says what is odd about one directory.
type Diagnostic struct {
	Path    string `json:"path"`    // the directory, absolute
	Message string `json:"message"` // one sentence, no path of its own at the start
	Error   bool   `json:"-"`       // true: the skill was not loaded for it
}

func (d Diagnostic) String() string { return d.Path + ": " + d.Message }

// notes collects the warnings about one directory.
type notes struct {
	dir  string
	list []Diagnostic
}

func (n *notes) warn(format string, args ...any) {
	n.list = append(n.list, Diagnostic{Path: n.dir, Message: fmt.Sprintf(format, args...)})
}
