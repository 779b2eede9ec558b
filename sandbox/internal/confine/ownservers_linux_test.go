//go:build amd64 || arm64

package confine

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestOwnServersAreOutOfReach: a command whose network is open reaches every
// server but the one that runs it, by whatever name.
func TestOwnServersAreOutOfReach(t *testing.T) {
	p := newPlace(t)
	exe, err := os.Executable()
	must(t, err)
	policy := p.policy()
	policy.Network = true
	tcp, err := net.Listen("tcp", ":0")
	must(t, err)
	defer tcp.Close()
	_, port, _ := net.SplitHostPort(tcp.Addr().String())
	file := filepath.Join(p.ws, "s.sock")
	local, err := net.Listen("unix", file)
	must(t, err)
	defer local.Close()
	must(t, os.Symlink("s.sock", filepath.Join(p.ws, "link.sock")))
	must(t, os.Link(file, filepath.Join(p.ws, "hard.sock")))
	targets := map[string]string{"s.sock": "unix", "link.sock": "unix", "hard.sock": "unix"}
	hosts := []string{"127.0.0.1", "127.9.9.9", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", "::ffff:0.0.0.0"}
	addrs, err := net.InterfaceAddrs()
	must(t, err)
	for _, a := range addrs {
		if ip := a.(*net.IPNet).IP; !ip.IsLinkLocalUnicast() {
			hosts = append(hosts, ip.String())
		}
	}
	for _, host := range hosts {
		targets[net.JoinHostPort(host, port)] = "tcp"
	}
	for name, without := range map[string]missing{"here": {}, "no duplicates": {getFD: true}} {
		c := confiner(t, policy, without)
		reaches := func(network, address string) bool {
			cmd := exec.Command(exe)
			cmd.Dir = p.ws
			cmd.Env = append(os.Environ(), probeVar+"=dial", "PROBE_NETWORK="+network, "PROBE_ADDRESS="+address)
			return runIn(c, cmd) == nil
		}
		var reached []string
		for address, network := range targets {
			if reaches(network, address) {
				reached = append(reached, address)
			} else {
				t.Logf("%s: %s cannot be reached anyway", name, address)
			}
		}
		if len(reached) < 6 {
			t.Errorf("%s: only %v can be reached: nothing is proven", name, reached)
		}
		forgetTCP, forgetUnix := Own(tcp.Addr()), Own(local.Addr())
		for _, address := range reached {
			if reaches(targets[address], address) {
				t.Errorf("%s: a command connects to %s", name, address)
			}
		}
		if other := serve(t, "tcp", "127.0.0.1:0"); !reaches("tcp", other) {
			t.Errorf("%s: another server is out of reach too", name)
		}
		forgetTCP()
		forgetUnix()
		if !reaches("tcp", reached[0]) && !reaches("unix", reached[0]) {
			t.Errorf("%s: it is not forgotten", name)
		}
	}
}
