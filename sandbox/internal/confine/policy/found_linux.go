package policy

import "slices"

// What a policy that was looked up tells, and what is made of it for one mechanism.

// OfGit marks writable places as git's: at a path ends all that commands may make.
func (p Policy) OfGit(kinds map[string]Kind) {
	for _, places := range [][]Place{p.Places, p.Dropped} {
		for i := range places {
			places[i].Kind = kinds[places[i].Path]
		}
	}
}

// Changed is a time that changes when a directory of objects came or went: rules
// are made for those that exist.
func (p Policy) Changed() (last int64) {
	for _, place := range p.Places {
		if place.Write && place.Kind == GitObjects && !place.Covered {
			st := place.stat()
			last += st.Mtim.Nano()
		}
	}
	return last
}

// GitBelow reports whether a writable place of git's lies below dir.
func (p Policy) GitBelow(dir string) bool {
	return slices.ContainsFunc(p.Places, func(place Place) bool {
		return place.Write && place.Kind != Everything && Below(place.Real, []string{dir})
	})
}

// WithoutGit lets git's places be read only, for kernels that cannot keep links out of them.
func (p Policy) WithoutGit() Policy {
	p.Places = slices.Clone(p.Places)
	for i := range p.Places {
		p.Places[i].Write = p.Places[i].Write && p.Places[i].Kind == Everything
	}
	return p
}

// Found is what the policy led to, without its names and reasons: all that somebody needs
// who makes mounts of it, and much less to hand over.
func (p Policy) Found() Policy {
	bare := func(places []Place) (kept []Place) {
		for _, place := range places {
			if place.Reason = ""; !place.Covered || len(place.Links) > 0 {
				kept = append(kept, place)
			}
		}
		return kept
	}
	return Policy{Write: p.Write, Devices: p.Devices, Network: p.Network, Places: bare(p.Places), Dropped: bare(p.Dropped)}
}

// Straight reports whether no link led to what was found at the paths.
func (p Policy) Straight(paths []string) bool {
	return !slices.ContainsFunc(p.Places, func(place Place) bool {
		return slices.Contains(paths, place.Path) && place.Real != place.Path
	})
}

// Written are the writable places, links resolved.
func (p Policy) Written() (paths []string) {
	for _, place := range p.Places {
		if place.Write {
			paths = append(paths, place.Real)
		}
	}
	return paths
}

// Shared is that directory as it was found, links resolved, where commands have it; else "".
func (p Policy) Shared() string {
	for _, place := range p.Places {
		if place.Write && place.Path == SharedMemory {
			return place.Real
		}
	}
	return ""
}

// Free are those of them in which commands may make everything, sockets too.
func (p Policy) Free() (paths []string) {
	for _, place := range p.Places {
		if place.Write && place.Kind == Everything {
			paths = append(paths, place.Real)
		}
	}
	return paths
}
