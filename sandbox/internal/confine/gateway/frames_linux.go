//go:build amd64 || arm64

package gateway

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/seccomp"
	"golang.org/x/sys/unix"
)

// A frame is one that the gateway's interface has got, after what the interface had
// left to do with it (struct virtio_net_hdr).
type frame []byte

const (
	offloadHeader  = 10
	ethernetHeader = 14
	tcpHeader      = 20
	largestAsking  = 4096 // of what begins a connection
)

func (f frame) packet() []byte { return f[offloadHeader+ethernetHeader:] }

// network is the size of the header before that of TCP.
func (f frame) network() int {
	if p := f.packet(); p[0]>>4 == 4 {
		return int(p[0]&0xf) * 4
	}
	return 40
}

// asks reports whether it is whole enough to read where it goes.
func (f frame) asks() bool {
	return len(f) >= offloadHeader+ethernetHeader+20 && f.network() >= 20 && len(f.packet()) >= f.network()+tcpHeader
}

// addresses are whence and where a frame goes, as they stand in it.
func (f frame) addresses() (from, to []byte) {
	if p := f.packet(); p[0]>>4 == 4 {
		return p[12:16], p[16:20]
	} else {
		return p[8:24], p[24:40]
	}
}

// to is where a frame goes.
func (f frame) to() netip.AddrPort {
	_, to := f.addresses()
	a, _ := netip.AddrFromSlice(to)
	return netip.AddrPortFrom(a, binary.BigEndian.Uint16(f.packet()[f.network()+2:]))
}

// onceMore is the last octet of the sender of frames that come once more. Nobody looks
// at it but who must not send them yet again.
const onceMore = 0xff

// again marks a frame as one that comes once more.
func (f frame) again() frame {
	f[offloadHeader+11] = onceMore
	return f
}

func (f frame) isAgain() bool { return f[offloadHeader+11] == onceMore }

// refusal is what refuses the connection that a frame begins.
func (f frame) refusal() frame {
	asked := f.packet()[f.network():]
	source, dest := f.addresses()
	tcp := make([]byte, tcpHeader)
	copy(tcp, asked[2:4])
	copy(tcp[2:], asked[:2])
	binary.BigEndian.PutUint32(tcp[8:], binary.BigEndian.Uint32(asked[4:])+1)
	tcp[12], tcp[13] = tcpHeader/4<<4, 0x14 // RST and ACK
	pseudo := slices.Concat(dest, source, []byte{0, unix.IPPROTO_TCP, 0, tcpHeader}, tcp)
	binary.BigEndian.PutUint16(tcp[16:], checksum(pseudo))

	out := make(frame, offloadHeader, offloadHeader+ethernetHeader+40+tcpHeader)
	out = append(out, f[offloadHeader:][:ethernetHeader]...)
	if len(source) == 4 {
		ip := []byte{0x45, 0, 0, 20 + tcpHeader, 0, 0, 0x40, 0, 64, unix.IPPROTO_TCP, 0, 0}
		ip = slices.Concat(ip, dest, source)
		binary.BigEndian.PutUint16(ip[10:], checksum(ip))
		return slices.Concat(out, ip, tcp)
	}
	return slices.Concat(out, []byte{0x60, 0, 0, 0, 0, tcpHeader, unix.IPPROTO_TCP, 64}, dest, source, tcp)
}

// checksum is that of the internet, of an even number of octets.
func checksum(b []byte) uint16 {
	sum := uint32(0)
	for ; len(b) > 1; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// askingFrames lets through the frames that begin a connection over TCP.
func askingFrames() []unix.SockFilter {
	const (
		half  = unix.BPF_LD | unix.BPF_H | unix.BPF_ABS
		octet = unix.BPF_LD | unix.BPF_B | unix.BPF_ABS
		flags = unix.BPF_LD | unix.BPF_B | unix.BPF_IND
		size4 = unix.BPF_LDX | unix.BPF_B | unix.BPF_MSH
		size6 = unix.BPF_LDX | unix.BPF_W | unix.BPF_IMM
	)
	return []unix.SockFilter{
		{Code: half, K: 12},
		{Code: seccomp.OpJeq, K: unix.ETH_P_IP, Jt: 0, Jf: 6},
		{Code: octet, K: 23},
		{Code: seccomp.OpJeq, K: unix.IPPROTO_TCP, Jt: 0, Jf: 12},
		{Code: half, K: 20},
		{Code: seccomp.OpJset, K: 0x1fff, Jt: 10, Jf: 0}, // the rest of a packet in pieces
		{Code: size4, K: 14},
		{Code: seccomp.OpJump, K: 4},
		{Code: seccomp.OpJeq, K: unix.ETH_P_IPV6, Jt: 0, Jf: 7},
		{Code: octet, K: 20},
		{Code: seccomp.OpJeq, K: unix.IPPROTO_TCP, Jt: 0, Jf: 5},
		{Code: size6, K: 40},
		{Code: flags, K: 14 + 13},
		{Code: seccomp.OpAnd, K: 0x12},
		{Code: seccomp.OpJeq, K: 0x02, Jt: 0, Jf: 1}, // SYN without ACK
		{Code: seccomp.OpRet, K: largestAsking},
		{Code: seccomp.OpRet, K: 0},
	}
}

func attachFilter(sock int, code []unix.SockFilter) error {
	return unix.SetsockoptSockFprog(sock, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]})
}
