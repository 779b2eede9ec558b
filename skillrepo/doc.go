// Package skillrepo reads Agent Skills from disk: directories that hold a
// SKILL.md, a YAML front matter followed by instructions.
//
// Start with three types:
//
//   - [Root]: one directory to look for skills in, and the file tree that may
//     be read while doing so.
//   - [Repo]: the skills found below some roots, a snapshot that [Repo.Refresh],
//     [Repo.Get] and [Repo.Watch] keep up with the disk.
//   - [Skill]: one skill: its front matter, and ways to its body and files.
//
// # What is read when
//
// Finding skills reads front matter only. Bodies, file lists and digests are
// read when they are asked for, each time as they are on disk then; only hashes
// and parsed front matter are remembered, under size, times and inode.
//
// # Trust
//
// Everything a skill ships is hostile text. Loading is lenient, but whatever is
// skipped or mended gives a [Diagnostic], and nothing outside a skill's real
// directory is ever read for it: links are resolved here, component by
// component, and only the link-free result is opened. Nothing is executed here.
//
// The package reads through [io/fs] and never opens a path of the machine by
// itself, so a caller who passes the tree of an os.Root gets its guarantees too.
package skillrepo
