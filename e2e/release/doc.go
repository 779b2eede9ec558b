// Package release holds what a release is made of to what it promises, without publishing anything: the binaries of
// .goreleaser.yaml are built here with its flags, twice and in different places, and must be the same bytes; a
// module that was installed says its version; the workflows have no right that they do not need.
//
// What takes minutes asks for PERSTACK_BASE_RELEASE=1: all six systems, and a second build that takes nothing from a
// cache.
package release
