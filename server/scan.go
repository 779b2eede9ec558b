package server

import (
	"bytes"
	"encoding/json"
)

// A scanner walks JSON that json.Valid has accepted, so it checks nothing
// again: a message is parsed once, and its values are found, not decoded.
type scanner struct {
	b []byte
	i int
}

// object walks the object at the scanner and calls visit with each key; visit
// consumes the value with value or object. It returns the object's text.
func (s *scanner) object(visit func(key []byte)) []byte {
	start := s.i
	s.i++
	for s.space(); s.b[s.i] != '}'; s.space() {
		if s.b[s.i] == ',' {
			s.i++
			s.space()
		}
		key := unquote(s.value())
		s.space()
		s.i++ // the colon
		s.space()
		visit(key)
	}
	s.i++
	return s.b[start:s.i]
}

// array walks the array at the scanner and calls visit with each element.
func (s *scanner) array(visit func(element []byte)) {
	s.i++
	for s.space(); s.b[s.i] != ']'; s.space() {
		if s.b[s.i] == ',' {
			s.i++
			s.space()
		}
		visit(s.value())
	}
	s.i++
}

// value consumes one value of any kind and returns its text.
func (s *scanner) value() []byte {
	start := s.i
	switch s.b[s.i] {
	case '"':
		s.text()
	case '{', '[':
		s.nested()
	default:
		for s.i < len(s.b) && !isBlank(s.b[s.i]) && !bytes.ContainsRune([]byte(",]}"), rune(s.b[s.i])) {
			s.i++
		}
	}
	return s.b[start:s.i]
}

func (s *scanner) text() {
	for s.i++; s.b[s.i] != '"'; s.i++ {
		if s.b[s.i] == '\\' {
			s.i++
		}
	}
	s.i++
}

func (s *scanner) nested() {
	for depth := 0; ; {
		switch s.b[s.i] {
		case '"':
			s.text()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		s.i++
		if depth == 0 {
			return
		}
	}
}

func (s *scanner) space() {
	for s.i < len(s.b) && isBlank(s.b[s.i]) {
		s.i++
	}
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

func isString(raw []byte) bool { return len(raw) > 0 && raw[0] == '"' }

func isObject(raw []byte) bool { return len(raw) > 0 && raw[0] == '{' }

// unquote returns the text of a JSON string, nil of nothing, without a copy when
// nothing in it is escaped.
func unquote(raw []byte) []byte {
	if raw == nil {
		return nil
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return nil
	}
	return []byte(s)
}
