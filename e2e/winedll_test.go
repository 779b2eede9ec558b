//go:build linux

package e2e

import (
	"bytes"
	littleendian "encoding/binary"
)

// forwarder is a DLL that has one function, and takes it from another DLL: Go wants one that Debian's Wine does not have yet.
func forwarder(dll, function, target string) []byte {
	const (
		section = 0x1000 // where the only section lies in memory
		raw     = 0x200  // and in the file
		tables  = 40 + 12
	)
	put := func(values ...any) []byte {
		var b bytes.Buffer
		for _, v := range values {
			if err := littleendian.Write(&b, littleendian.LittleEndian, v); err != nil {
				panic(err)
			}
		}
		return b.Bytes()
	}
	names := dll + "\x00" + function + "\x00" + target + "\x00"
	at := uint32(section + tables)
	functionAt, targetAt := at+uint32(len(dll)+1), at+uint32(len(dll)+len(function)+2)
	size := uint32(tables + len(names))
	exports := append(put( // a directory, and three tables of one entry each
		uint32(0), uint32(0), uint32(0), at, uint32(1), uint32(1), uint32(1), uint32(section+40), uint32(section+44), uint32(section+48),
		targetAt, functionAt, uint32(0)), names...)
	header := put([]byte("MZ"), make([]byte, 58), uint32(64), []byte("PE\x00\x00"),
		uint16(0x8664), uint16(1), uint32(0), uint32(0), uint32(0), uint16(240), uint16(0x2022), // amd64, one section, a DLL
		uint16(0x20b), uint16(14), uint32(0), uint32(raw), uint32(0), uint32(0), uint32(section),
		uint64(0x180000000), uint32(section), uint32(raw), uint16(6), uint32(0), uint16(0), uint32(6), uint32(0), uint32(2*section), uint32(raw), uint32(0), uint16(3), uint16(0x160),
		uint64(1<<20), uint64(1<<12), uint64(1<<20), uint64(1<<12), uint32(0), uint32(16),
		uint32(section), size, make([]byte, 15*8), // of 16 directories the first: exports
		[]byte(".rdata\x00\x00"), size, uint32(section), uint32(raw), uint32(raw), make([]byte, 12), uint32(0x40000040))
	file := make([]byte, 2*raw)
	copy(file, header)
	copy(file[raw:], exports)
	return file
}
