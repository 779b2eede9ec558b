package patch

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"os"
	"testing"
)

// content is the text of a file, or {"b64": ...} for bytes that are no UTF-8.
type content string

func (c *content) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*c = content(text)
		return nil
	}
	var coded struct{ B64 string }
	if err := json.Unmarshal(data, &coded); err != nil {
		return err
	}
	raw, err := base64.StdEncoding.DecodeString(coded.B64)
	*c = content(raw)
	return err
}

type testCase struct {
	Name        string
	Input       map[string]content
	Patch       string
	Expected    map[string]content
	ExpectError bool `json:"expect_error"`
	Note        string
}

func loadCases(t testing.TB) []testCase {
	t.Helper()
	data, err := os.ReadFile("../../../testdata/apply_patch_cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []testCase
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 60 {
		t.Fatalf("only %d cases", len(cases))
	}
	return cases
}

func TestCases(t *testing.T) {
	for _, c := range loadCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			d := newDisk(t)
			for name, data := range c.Input {
				d.write(t, name, []byte(data))
			}
			answer, err := d.run(t, c.Patch)
			if (err != nil) != c.ExpectError {
				t.Fatalf("error %v, expected one: %v (%s)", err, c.ExpectError, c.Note)
			}
			want := map[string]string{}
			for name, data := range c.Expected {
				want[name] = string(data)
			}
			if got := d.files(t); !maps.Equal(got, want) {
				t.Errorf("got %q\nwant %q (%s)\n%s%v", got, want, c.Note, answer, err)
			}
		})
	}
}
