package quota

import (
	"math"
	"testing"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "1048576": 1 << 20, "512M": 512 << 20, "2g": 2 << 30, "1K": 1024, "1T": 1 << 40, "-1M": -1 << 20, "8388607T": 8388607 << 40} {
		if got, err := ParseSize(text); got != want || err != nil {
			t.Errorf("%s: %d %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "M", "1MB", "1.5G", "1 M", "8388608T", "99999999999999999999", "0x10", "1KK"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("%q is taken for %d", text, got)
		}
	}
}

func TestSizeText(t *testing.T) {
	for bytes, want := range map[int64]string{0: "0", 1: "1", 1024: "1K", 1025: "1025", 512 << 20: "512M", 3 << 30: "3G", 1 << 50: "1024T"} {
		if got := SizeText(bytes); got != want {
			t.Errorf("%d: %s, want %s", bytes, got, want)
		}
		if back, err := ParseSize(want); back != bytes || err != nil {
			t.Errorf("%s: %d %v", want, back, err)
		}
	}
}

func TestQuotaCheck(t *testing.T) {
	for _, q := range []Limits{{}, {MaxMemory: MinMemory, MaxProcesses: 1, MaxCPUs: MinCPUs}, {MaxMemory: 1 << 50, MaxProcesses: math.MaxInt32, MaxCPUs: MaxCPUs}} {
		if err := q.Check(); err != nil {
			t.Errorf("%+v: %v", q, err)
		}
	}
	for _, q := range []Limits{{MaxMemory: -1}, {MaxMemory: 5}, {MaxProcesses: -1}, {MaxCPUs: -1}, {MaxCPUs: 0.001}, {MaxCPUs: math.NaN()}, {MaxCPUs: math.Inf(1)}} {
		if err := q.Check(); err == nil {
			t.Errorf("%+v is taken", q)
		}
	}
}
