package private

import (
	"strings"
	"testing"
)

// TestUserTables: the tables have the form of the machine's, whatever the home is called, with root, nobody and the user.
func TestUserTables(t *testing.T) {
	passwd, group := userTables("/home:of\nmine")
	for text, fields := range map[string]int{passwd: 7, group: 4} {
		ids := map[string]bool{}
		for line := range strings.Lines(text) {
			parts := strings.Split(strings.TrimSuffix(line, "\n"), ":")
			if len(parts) != fields || ids[parts[2]] || parts[0] == "" {
				t.Errorf("%q", line)
			}
			ids[parts[2]] = true
		}
		if !ids["0"] || !ids["65534"] {
			t.Errorf("%q", text)
		}
	}
}
