package tools

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// JSON returns the JSON Schema: flat, closed, properties in the order of the struct.
//
// It is put together by hand: nothing in encoding/json keeps an order but a struct, and
// every level that is encoded by itself is read again by the one around it, while a
// client waits for its first list.
func (s *Schema) JSON() json.RawMessage { return s.append(nil, "") }

func (s *Schema) append(b []byte, doc string) []byte {
	var required []string
	b = append(b, `{"type":"object","properties":{`...)
	for i, f := range s.Fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, f.Name), ':')
		b = f.append(b)
		if !f.Optional {
			required = append(required, f.Name)
		}
	}
	b = append(b, '}')
	if required != nil {
		b = appendTexts(append(b, `,"required":`...), required)
	}
	b = append(b, `,"additionalProperties":false`...)
	if doc != "" {
		b = appendText(append(b, `,"description":`...), doc)
	}
	return append(b, '}')
}

func (f *Field) append(b []byte) []byte {
	if f.kind == kindObject {
		return f.object.append(b, f.Doc)
	}
	b = f.appendType(append(b, `{"type":`...))
	if f.Doc != "" {
		b = appendText(append(b, `,"description":`...), f.Doc)
	}
	if f.Default != nil {
		b = append(append(b, `,"default":`...), JSON(f.Default)...)
	}
	enum := f.Enum
	if f.Known != nil {
		enum = f.Known
	}
	if len(enum) > 0 {
		b = appendTexts(append(b, `,"enum":`...), enum)
	}
	b = appendBound(b, `,"minimum":`, f.Min)
	b = appendBound(b, `,"maximum":`, f.Max)
	b = appendBound(b, `,"minLength":`, f.MinLen)
	b = appendBound(b, `,"maxLength":`, f.MaxLen)
	switch f.kind {
	case kindList:
		b = f.elem.append(append(b, `,"items":`...))
	case kindMap:
		b = f.elem.append(append(b, `,"additionalProperties":`...))
	}
	return append(b, '}')
}

// appendType appends the type in JSON Schema: a name, or two where null is one.
func (f *Field) appendType(b []byte) []byte {
	name := string(f.kind)
	switch {
	case f.kind == kindMap:
		name = "object"
	case f.kind == kindInteger && f.Number:
		name = "number"
	}
	if f.Nullable {
		return appendTexts(b, []string{name, "null"})
	}
	return appendText(b, name)
}

func appendBound[T int | int64](b []byte, key string, bound *T) []byte {
	if bound == nil {
		return b
	}
	return strconv.AppendInt(append(b, key...), int64(*bound), 10)
}

func appendTexts(b []byte, texts []string) []byte {
	b = append(b, '[')
	for i, text := range texts {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, text)
	}
	return append(b, ']')
}

func appendText(b []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return append(b, JSON(text)...)
		}
	}
	return append(append(append(b, '"'), text...), '"')
}

// JSON encodes v compactly with HTML characters as they are. It panics when v
// cannot be encoded, which no value of this program's can fail to be.
func JSON(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
