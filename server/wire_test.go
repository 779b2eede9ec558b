package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const wireDir = "../testdata/wire"

// wireRequests are what every client asks before it does anything, in this order. What is answered stays in
// the client's context, so a change of any of it is a change for every user: the golden files show it in a review.
var wireRequests = []struct{ method, params string }{
	{"initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"golden","version":"1"}}`},
	{"tools/list", `{}`},
	{"prompts/list", `{}`},
	{"resources/templates/list", `{}`},
}

// TestWireIsWhatClientsKnow compares what the default selection and each profile answer with
// testdata/wire. How many tokens that is, e2e/tokens holds.
func TestWireIsWhatClientsKnow(t *testing.T) {
	wanted := map[string]bool{}
	for name, selection := range wireSelections() {
		path := filepath.Join(wireDir, name+".json")
		wanted[path] = true
		golden(t, path, indented(t, wireAnswers(t, selection)))
	}
	orphans(t, filepath.Join(wireDir, "*.json"), wanted)
}

// wireSelections are the golden files: the default selection, and each profile that is not the default alone.
func wireSelections() map[string][]string {
	all := map[string][]string{"default": nil}
	for _, p := range Profiles {
		if selection := []string{p.Name}; !slices.Equal(selection, DefaultTools) {
			all[p.Name] = selection
		}
	}
	return all
}

// A wireAnswer is one request and its result.
type wireAnswer struct {
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
}

// wireAnswers asks a server over stdio, in an empty workspace.
func wireAnswers(t *testing.T, selection []string) []wireAnswer {
	t.Helper()
	s := newServer(t, Config{Workspace: t.TempDir(), Tools: selection, NoDiscover: true, Version: "0.0.0"})
	var in, out bytes.Buffer
	for id, r := range wireRequests {
		fmt.Fprintf(&in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, r.method, r.params)
		if r.method == "initialize" {
			fmt.Fprintln(&in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		}
	}
	if err := s.ServeStdio(t.Context(), &in, &out); err != nil {
		t.Fatal(err)
	}
	answers := make([]wireAnswer, len(wireRequests))
	for line := range strings.Lines(out.String()) {
		var m struct {
			ID     *int
			Result json.RawMessage
			Error  json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil || m.Error != nil {
			t.Fatalf("%s (%v)", line, err)
		}
		if m.ID != nil {
			answers[*m.ID] = wireAnswer{wireRequests[*m.ID].method, m.Result}
		}
	}
	for i, a := range answers {
		if len(a.Result) == 0 {
			t.Fatalf("%s was not answered", wireRequests[i].method)
		}
	}
	return answers
}
