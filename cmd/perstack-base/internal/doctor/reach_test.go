package doctor

import "testing"

// TestReachTakesHosts: what is no host is refused before anything tries it or prints it.
func TestReachTakesHosts(t *testing.T) {
	for target, want := range map[string]bool{
		"a.example:443": true, "bücher.example:80": true, "127.0.0.1:22": true, "[::1]:80": true, "[fe80::1%eth0]:80": true, "my_host:1": true, "xn--bcher-kva.example:443": true,
		"-x:80": false, "--:80": false, "a\nb:80": false, "a b:80": false, "u@h:80": false, "h/p:80": false, ":80": false, "a:0": false, "a:65536": false, "a:http": false,
		"[fe80::1%e\nh]:80": false, "a\x1b[1m:80": false, "a%b:80": false,
	} {
		if err := CheckTarget(target); (err == nil) != want {
			t.Errorf("%q: %v, want it taken: %v", target, err, want)
		}
	}
}
