//go:build amd64 || arm64

package namespaces

import "testing"

// TestGrantsAreOfThemselves: a path that is granted shows what is there, and never,
// for want of saying so, the machine's root.
func TestGrantsAreOfThemselves(t *testing.T) {
	v := view{grants: map[string]grant{}, links: map[string]string{}}
	v.grant("/run/systemd/resolve/stub-resolv.conf", grant{})
	v.grant("/usr/lib", grant{from: "/elsewhere"})
	if got := v.grants["/run/systemd/resolve/stub-resolv.conf"].from; got != "/run/systemd/resolve/stub-resolv.conf" {
		t.Errorf("it shows %q", got)
	}
	if got := v.grants["/usr/lib"].from; got != "/elsewhere" {
		t.Errorf("it shows %q", got)
	}
}
