// Package remote is the protocol between a server and the runner that runs its
// commands somewhere else, over a stream of bytes each way: a container's standard
// input and output.
//
// # Frames
//
// A frame is two numbers of 32 bits, big endian, and what they are the lengths of: a
// [Message] as JSON, and its body, which is raw bytes. [Reader] and [Writer] bound
// both: a frame that is larger, or that is no message, ends the stream.
//
// # Conversation
//
// The server says hello, once; the runner says welcome. Where hello names a Unix socket,
// and the runner reaches it, it says hello's token there, and all that follows welcome
// goes through the socket; what comes of the first stream is then only its end, which
// is that of the conversation. From then on there are commands, each with a number of the server's choice:
//
//	server          runner
//	stdin*, run     tail*, output*, result      a command that is waited for
//	                fault                       it was not started
//	start           started | fault             a command that goes on
//	                output*, result, gone
//	cancel                                      of either: the end, as after a deadline
//	input           answer                      once the command can read it
//	signal          answer                      once nothing of it is left, or the grace is over
//	ask             answer                      whether it waits for input
//	close           answer                      a shell, with all that it left running
//	beat            beat                        every [Beat]
//
// Who hears nothing for [Silence] takes the other for dead: the server removes the
// container, the runner kills everything and ends. So does a runner whose stream ends.
//
// The runner trusts the server. The server trusts nobody: commands that take over
// the runner can say anything, and all that comes of it is what such a command could
// have printed.
package remote

import "time"

// Version is that of the protocol. The runner is the server's own program, or one of
// the same version in the image.
const Version = 1

// When either side speaks at the latest, and when it is taken for dead.
const (
	Beat    = 2 * time.Second
	Silence = 10 * time.Second
)

// Bounds of one frame.
const (
	MaxBody       = 256 << 10 // four times what a pipe holds
	MaxFromServer = 16 << 20  // what a system takes of arguments, every character escaped
	MaxFromRunner = 1 << 20   // sentences about what was refused
)
