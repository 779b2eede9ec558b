package jsonrpc

import (
	"bytes"
	"encoding/json"
	"regexp"
	"sync"
	"unicode/utf8"
)

// edgeBytes is how much of either end of a message that is too long is kept to
// find its id.
const edgeBytes = 4096

// goodID says whether raw, one JSON value, can be a request's id: a string, or
// an integer without fraction and exponent, of any size.
func goodID(raw []byte) bool {
	if len(raw) == 0 {
		return false
	}
	if raw[0] == '"' {
		return true
	}
	return (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9') && !bytes.ContainsAny(raw, ".eE")
}

// ID finds the id of the message: a member id within its head, or one that closes
// it. Nil when neither is there.
func (o *Oversize) ID() []byte {
	if id := idInHead(o.head); id != nil {
		return id
	}
	return idAtEnd(o.tail)
}

// idInHead scans the members of the object that starts head for id.
func idInHead(head []byte) []byte {
	dec := json.NewDecoder(bytes.NewReader(head))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil
		}
		var value json.RawMessage
		// A value that ends where head ends may be only the half of it.
		if dec.Decode(&value) != nil || dec.InputOffset() >= int64(len(head)) {
			return nil
		}
		if key == "id" {
			return usableID(value)
		}
	}
	return nil
}

// closingID matches an id as the last member of an object that ends the text.
var closingID = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[,{]\s*"id"\s*:\s*(-?(?:0|[1-9][0-9]*)|"(?:[^"\\]|\\.)*")\s*}\s*$`)
})

func idAtEnd(tail []byte) []byte {
	if match := closingID().FindSubmatch(tail); match != nil {
		return usableID(match[1])
	}
	return nil
}

func usableID(raw []byte) []byte {
	if !goodID(raw) || !json.Valid(raw) || !utf8.Valid(raw) {
		return nil
	}
	return raw
}
