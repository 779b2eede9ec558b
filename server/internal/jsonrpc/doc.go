// Package jsonrpc turns bytes into JSON-RPC messages and back.
//
// Start with [LineReader], which frames a byte stream, and [Read], which takes one
// message apart; [EncodeAnswer], [EncodeError] and [EncodeNotice] write messages.
// What a method means is not known here; see package dispatch.
package jsonrpc
