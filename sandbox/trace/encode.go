package trace

import (
	"encoding/hex"
	"strconv"
	"unicode/utf8"
)

// An encoder makes lines of OTLP/JSON, one ExportTraceServiceRequest with one span each.
type encoder struct {
	head []byte // up to the span: the resource and the scope are the same in all
}

const tail = "}]}]}]}\n"

func newEncoder(service, version, instance string) *encoder {
	b := []byte(`{"resourceSpans":[{"resource":{"attributes":[`)
	b = appendAttr(b, &attr{key: "service.name", text: service})
	b = appendAttr(append(b, ','), &attr{key: "service.version", text: version})
	b = appendAttr(append(b, ','), &attr{key: "service.instance.id", text: instance})
	b = append(b, `]},"scopeSpans":[{"scope":{"name":`...)
	b = appendString(b, service)
	b = append(b, `,"version":`...)
	b = appendString(b, version)
	return &encoder{append(b, `},"spans":[{`...)}
}

// Bits of a span's flags that say whether its parent is somebody else's.
const (
	flagKnowsRemote = 0x100
	flagRemote      = 0x200
	statusError     = `,"status":{"code":2}`
)

// encode appends the line of a span that has ended.
func (e *encoder) encode(b []byte, s *Span) []byte {
	b = append(b, e.head...)
	b = append(hex.AppendEncode(append(b, `"traceId":"`...), s.trace[:]), '"')
	b = append(hex.AppendEncode(append(b, `,"spanId":"`...), s.id[:]), '"')
	if s.parent != (spanID{}) {
		b = append(hex.AppendEncode(append(b, `,"parentSpanId":"`...), s.parent[:]), '"')
	}
	if s.state != "" {
		b = appendString(append(b, `,"traceState":`...), s.state)
	}
	flags := int64(s.flags) | flagKnowsRemote
	if s.remote {
		flags |= flagRemote
	}
	b = strconv.AppendInt(append(b, `,"flags":`...), flags, 10)
	name := s.name
	if s.target != "" {
		name += " " + s.target
	}
	b = appendString(append(b, `,"name":`...), name)
	b = strconv.AppendInt(append(b, `,"kind":`...), int64(s.kind), 10)
	b = append(strconv.AppendInt(append(b, `,"startTimeUnixNano":"`...), s.start, 10), '"')
	b = append(strconv.AppendInt(append(b, `,"endTimeUnixNano":"`...), s.end, 10), '"')
	b = append(b, `,"attributes":[`...)
	for i := range s.attrs[:s.count] {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendAttr(b, &s.attrs[i])
	}
	b = append(b, ']')
	if s.failed {
		b = append(b, statusError...)
	}
	return append(b, tail...)
}

func appendAttr(b []byte, a *attr) []byte {
	b = appendString(append(b, `{"key":`...), a.key)
	switch a.kind {
	case attrInt:
		b = append(strconv.AppendInt(append(b, `,"value":{"intValue":"`...), a.num, 10), '"')
	case attrBool:
		b = strconv.AppendBool(append(b, `,"value":{"boolValue":`...), a.num != 0)
	default:
		b = appendString(append(b, `,"value":{"stringValue":`...), a.text)
	}
	return append(b, "}}"...)
}

// appendString appends a JSON string. What is no UTF-8 becomes U+FFFD.
func appendString(b []byte, s string) []byte {
	const digits = "0123456789abcdef"
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ' || r == 0x7f:
			b = append(b, `\u00`...)
			b = append(b, digits[r>>4], digits[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}
