package environ

import (
	"reflect"
	"testing"
)

// TestHostVariables: what names a path of the host says nothing in a container.
func TestHostVariables(t *testing.T) {
	for value, names := range map[string]bool{
		"word": false, "": false, "a/b": false, "https://example.com/x": false, "en_US.UTF-8": false, "-buildvcs=false": false, "8.8.8.8:53": false,
		"/opt": true, "~/x": true, "a:/opt": true, "-L/lib": false, "-I /usr/include": true, "unix:path=/run/bus": true, "unix:///run/x.sock": true,
		"file:///etc/x": true, `"/quoted"`: true, "a,/b": true,
	} {
		if NamesPath(value) != names {
			t.Errorf("%q: %v", value, !names)
		}
	}
	got := HostVariables([]string{"PATH=x", "HOME=y", "A=b", "P=/p", "DISPLAY=:0"})
	if !reflect.DeepEqual(got, []string{"A=b"}) {
		t.Error(got)
	}
}
