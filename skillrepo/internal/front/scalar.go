package front

import (
	"bytes"
	"encoding/json"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"
)

// The scalars of YAML 1.2's core schema that JSON has, and nothing more: dates,
// yes, 1_000, 12:30, .inf and .nan are the author's text.
var (
	decimal  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[-+]?[0-9]+$`) })
	prefixed = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^0(o[0-7]+|x[0-9a-fA-F]+)$`) })
	float    = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	})
)

// AppendJSON appends a plain tree as JSON, keys in the order written.
func AppendJSON(b []byte, n *yaml.Node) []byte {
	switch n.Kind {
	case yaml.MappingNode:
		b = append(b, '{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, n.Content[i].Value), ':')
			b = AppendJSON(b, n.Content[i+1])
		}
		return append(b, '}')
	case yaml.SequenceNode:
		b = append(b, '[')
		for i, c := range n.Content {
			if i > 0 {
				b = append(b, ',')
			}
			b = AppendJSON(b, c)
		}
		return append(b, ']')
	}
	return appendScalar(b, n)
}

func appendString(b []byte, s string) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string cannot fail
	return append(b, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
}

func appendScalar(b []byte, n *yaml.Node) []byte {
	if !isPlain(n) {
		return appendString(b, n.Value)
	}
	switch v := n.Value; v {
	case "", "~", "null", "Null", "NULL":
		return append(b, "null"...)
	case "true", "True", "TRUE":
		return append(b, "true"...)
	case "false", "False", "FALSE":
		return append(b, "false"...)
	default:
		if num, ok := number(v); ok {
			return append(b, num...)
		}
		return appendString(b, v)
	}
}

// isPlain reports whether a scalar was written without quotes or a block style.
func isPlain(n *yaml.Node) bool {
	const quoted = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	return n.Kind == yaml.ScalarNode && n.Style&quoted == 0
}

// IsNull reports whether a value is absent in all but its key.
func IsNull(n *yaml.Node) bool {
	return isPlain(n) && string(appendScalar(nil, n)) == "null"
}

// number writes a core schema number as JSON. One that no float64 can hold stays
// text: many readers of JSON would refuse the whole document for it.
func number(v string) (string, bool) {
	switch {
	case decimal().MatchString(v):
		v = canonical(v)
	case prefixed().MatchString(v):
		i, ok := new(big.Int).SetString(v, 0)
		if !ok {
			return "", false
		}
		v = i.String()
	case float().MatchString(v):
		f, err := strconv.ParseFloat(v, 64)
		if err != nil {
			return "", false
		}
		j, err := json.Marshal(f)
		return string(j), err == nil
	default:
		return "", false
	}
	f, err := strconv.ParseFloat(v, 64)
	return v, err == nil && !math.IsInf(f, 0)
}

// canonical drops what JSON does not know of in an integer: a plus, leading zeros.
func canonical(v string) string {
	sign := ""
	if v[0] == '-' {
		sign = "-"
	}
	v = strings.TrimLeft(strings.TrimLeft(v, "+-"), "0")
	if v == "" {
		return "0"
	}
	return sign + v
}

// IsString reports whether a value is text in the JSON form.
func IsString(v *yaml.Node) bool {
	return v != nil && v.Kind == yaml.ScalarNode && appendScalar(nil, v)[0] == '"'
}
