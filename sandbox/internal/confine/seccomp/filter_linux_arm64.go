package seccomp

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// This architecture was born without the old calls.
func legacyRules() []rule { return nil }

func legacyOpen(func(nr uint32, flags int) rule) []rule { return nil }

var legacyChmod []uint32
