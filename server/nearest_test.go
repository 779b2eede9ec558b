package server

import "testing"

func TestNearest(t *testing.T) {
	words := []string{"todo", "exec", "readTextFile", "serve", "tools", "list", "http"}
	for _, c := range []struct{ word, want string }{
		{"foo", ""}, {"TODO", "todo"}, {"readTextfile", "readTextFile"}, {"servee", "serve"}, {"tols", "tools"},
		{"lsit", "list"}, {"htpp", "http"}, {"exce", "exec"}, {"write", ""}, {"", ""}, {"x", ""},
	} {
		if got := Nearest(c.word, words); got != c.want {
			t.Errorf("%q is taken for %q, not %q", c.word, got, c.want)
		}
	}
}
