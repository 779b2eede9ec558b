// Package private makes the private directories of commands: TMPDIR and HOME of one
// session, and what its commands read instead of the machine's tables. [New] makes one;
// the server works in it by handle only.
package private
