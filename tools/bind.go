package tools

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"
)

// MaxInteger is the largest whole number that every JSON reader takes exactly;
// arguments beyond it, on either side of zero, are refused.
const MaxInteger = 1<<53 - 1

// bind puts args into the struct dst, strictly: unknown arguments are reported
// before missing ones, those before wrong types, those before bounds. null
// counts as absent. Every error is an *ArgError.
func (s *Schema) bind(args map[string]any, dst reflect.Value) error {
	return s.bindAt("", args, dst)
}

func (s *Schema) bindAt(prefix string, args map[string]any, dst reflect.Value) error {
	args, err := s.spelled(prefix, args)
	if err != nil {
		return err
	}
	if err := s.checkNames(prefix, args); err != nil {
		return err
	}
	var first error
	for _, f := range s.Fields {
		v := args[f.Name]
		if v == nil {
			v = f.Default
		}
		if v == nil {
			continue
		}
		err := f.bind(prefix+f.Name, v, dst.FieldByIndex(f.index))
		if isType(err) {
			return err
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// isType tells whether a value was not of the type that is wanted.
func isType(err error) bool {
	var arg *ArgError
	return errors.As(err, &arg) && arg.Problem == ArgType
}

// spelled puts arguments that came under another accepted name under the listed one.
func (s *Schema) spelled(prefix string, args map[string]any) (map[string]any, error) {
	for _, f := range s.Fields {
		v, given := args[f.Also]
		if f.Also == "" || !given {
			continue
		}
		args = maps.Clone(args)
		delete(args, f.Also)
		switch {
		case v == nil:
		case args[f.Name] != nil:
			return nil, &ArgError{Problem: ArgTwice, Names: prefixed(prefix, []string{f.Name, f.Also})}
		default:
			args[f.Name] = v
		}
	}
	return args, nil
}

func (s *Schema) checkNames(prefix string, args map[string]any) error {
	var unknown, missing []string
	for name := range args {
		if s.Field(name) == nil {
			unknown = append(unknown, name)
		}
	}
	if unknown != nil {
		sort.Strings(unknown)
		return &ArgError{Problem: ArgUnknown, Names: prefixed(prefix, unknown), Known: s.names(), Near: nearest(unknown[0], s.names())}
	}
	for _, f := range s.Fields {
		if !f.Optional && args[f.Name] == nil {
			missing = append(missing, f.Name)
		}
	}
	if missing != nil {
		return &ArgError{Problem: ArgMissing, Names: prefixed(prefix, missing), Known: s.names()}
	}
	return nil
}

func prefixed(prefix string, names []string) []string {
	out := slices.Clone(names)
	for i := range out {
		out[i] = prefix + out[i]
	}
	return out
}

// bind checks one value and stores it. name is its place, as in `steps[1].status`.
func (f *Field) bind(name string, v any, dst reflect.Value) error {
	if dst.Kind() == reflect.Pointer {
		dst.Set(reflect.New(dst.Type().Elem()))
		dst = dst.Elem()
	}
	switch f.kind {
	case kindString:
		return f.bindString(name, v, dst)
	case kindBool:
		b, ok := v.(bool)
		if !ok {
			return wrong(name, "true or false")
		}
		dst.SetBool(b)
	case kindInteger:
		return f.bindInteger(name, v, dst)
	case kindNumber:
		n, ok := v.(float64)
		if !ok {
			return wrong(name, "a number")
		}
		dst.SetFloat(n)
	case kindList:
		return f.bindList(name, v, dst)
	case kindMap:
		return f.bindMap(name, v, dst)
	case kindObject:
		m, ok := v.(map[string]any)
		if !ok {
			return wrong(name, "an object")
		}
		return f.object.bindAt(name+".", m, dst)
	}
	return nil
}

func (f *Field) bindString(name string, v any, dst reflect.Value) error {
	text, ok := v.(string)
	if !ok {
		return wrong(name, "a string")
	}
	length := -1 // counted only where a bound could be passed
	if f.MaxLen != nil && len(text) > *f.MaxLen {
		length = utf8.RuneCountInString(text)
	}
	switch {
	case f.MinLen != nil && text == "":
		return &ArgError{Problem: ArgEmpty, Names: []string{name}}
	case f.MaxLen != nil && length > *f.MaxLen:
		return &ArgError{Problem: ArgTooLong, Names: []string{name}, Limit: int64(*f.MaxLen), Size: int64(length)}
	case f.NoNUL && strings.ContainsRune(text, 0):
		return &ArgError{Problem: ArgNUL, Names: []string{name}}
	case f.Enum != nil && !slices.Contains(f.Enum, text):
		return &ArgError{Problem: ArgWrong, Names: []string{name}, Want: "one of " + strings.Join(f.Enum, ", ")}
	}
	dst.SetString(text)
	return nil
}

func (f *Field) bindInteger(name string, v any, dst reflect.Value) error {
	n, ok := v.(float64)
	switch {
	case !ok || n != math.Trunc(n):
		return wrong(name, "a whole number")
	case math.Abs(n) > MaxInteger:
		return &ArgError{Problem: ArgWrong, Names: []string{name}, Want: fmt.Sprintf("between -%d and %d", MaxInteger, MaxInteger)}
	case f.Min != nil && int64(n) < *f.Min:
		return &ArgError{Problem: ArgBelow, Names: []string{name}, Limit: *f.Min}
	case f.Max != nil && int64(n) > *f.Max:
		return &ArgError{Problem: ArgAbove, Names: []string{name}, Limit: *f.Max}
	}
	dst.SetInt(int64(n))
	return nil
}

func (f *Field) bindList(name string, v any, dst reflect.Value) error {
	items, ok := v.([]any)
	if !ok {
		return wrong(name, "an array")
	}
	list := reflect.MakeSlice(dst.Type(), len(items), len(items))
	for i, item := range items {
		if err := f.elem.bind(fmt.Sprintf("%s[%d]", name, i), item, list.Index(i)); err != nil {
			return err
		}
	}
	dst.Set(list)
	return nil
}

func (f *Field) bindMap(name string, v any, dst reflect.Value) error {
	entries, ok := v.(map[string]any)
	if !ok {
		return wrong(name, "an object")
	}
	m := reflect.MakeMapWithSize(dst.Type(), len(entries))
	keys := make([]string, 0, len(entries))
	for key := range entries {
		keys = append(keys, key)
	}
	sort.Strings(keys) // so that the same call gets the same message
	for _, key := range keys {
		value := reflect.New(dst.Type().Elem()).Elem()
		if err := f.elem.bind(name+"."+key, entries[key], value); err != nil {
			return err
		}
		m.SetMapIndex(reflect.ValueOf(key), value)
	}
	dst.Set(m)
	return nil
}

func wrong(name, want string) error {
	return &ArgError{Problem: ArgType, Names: []string{name}, Want: want}
}

// arguments turns what a request carries into a map; absent counts as empty.
func arguments(v any) (map[string]any, error) {
	switch v := v.(type) {
	case nil:
		return map[string]any{}, nil
	case map[string]any:
		return v, nil
	case []any:
		return nil, wrong("arguments", "an object, not a list")
	case string:
		return nil, wrong("arguments", "an object, not a text")
	case float64:
		return nil, wrong("arguments", "an object, not a number")
	}
	return nil, wrong("arguments", "an object, not true or false")
}
