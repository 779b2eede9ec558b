package private

import (
	"os"
	"testing"
)

// TestOwnNames: commands see the names of this machine, and none of its neighbours.
func TestOwnNames(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Skip(err)
	}
	machine := "127.0.0.1 localhost # always\n127.0.1.1\tdev.example\n::1 ip6-localhost\nff02::1 ip6-allnodes\n172.17.0.2 " + host + "\n10.0.0.5 db.example\n0.0.0.0 ads.example\nno address\n"
	want := "127.0.0.1 localhost\n127.0.1.1 dev.example\n::1 ip6-localhost\nff02::1 ip6-allnodes\n172.17.0.2 " + host + "\n"
	if got := ownNames(machine); got != want {
		t.Errorf("got %q", got)
	}
	if got := ownNames("10.0.0.5 db.example"); got != "127.0.0.1 localhost\n::1 localhost\n127.0.1.1 "+host+"\n" {
		t.Errorf("got %q", got)
	}
}
