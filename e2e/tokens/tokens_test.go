// Package tokens holds what a client keeps in its context of each selection of tools, as testdata/wire has it
// (server/wire_test.go writes it), to a number of tokens. It is a module of its own: the vocabulary of the tokenizer is
// 8 MB, and nothing else needs it.
//
// The tokenizer is o200k_base, a real one with a public vocabulary. The one that Anthropic has published counts up to
// 4 % more on these texts.
package tokens

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tiktoken-go/tokenizer"
)

// How many tokens initialize, tools/list, prompts/list and resources/templates/list may have together. Schemas of
// answers and annotations count although most clients keep them from the model.
const (
	mostDefault = 2500
	mostProfile = 2000
)

func TestTokensOfEachProfile(t *testing.T) {
	paths, err := filepath.Glob("../../testdata/wire/*.json")
	if err != nil || len(paths) < 2 {
		t.Fatalf("only %q (%v)", paths, err)
	}
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	withDefault := false
	for _, path := range paths {
		name, most := strings.TrimSuffix(filepath.Base(path), ".json"), mostProfile
		if name == "default" {
			withDefault, most = true, mostDefault
		}
		total := 0
		for _, answer := range answers(t, path) {
			n, err := codec.Count(answer)
			if err != nil || n == 0 {
				t.Fatal(n, err)
			}
			total += n
		}
		t.Logf("%s: %d of %d tokens", name, total, most)
		if total > most {
			t.Errorf("%s: %d tokens, more than %d: shorten descriptions, then go test ./server -update", name, total, most)
		}
	}
	if !withDefault {
		t.Error("testdata/wire has lost the default selection")
	}
}

// answers are the results in a golden file as they go over the wire, without spaces.
func answers(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []struct{ Result json.RawMessage }
	if err := json.Unmarshal(text, &all); err != nil || len(all) != 4 {
		t.Fatalf("%s has %d answers (%v)", path, len(all), err)
	}
	var out []string
	for _, a := range all {
		var b bytes.Buffer
		if err := json.Compact(&b, a.Result); err != nil {
			t.Fatal(err)
		}
		out = append(out, b.String())
	}
	return out
}
