package tools

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// A Schema describes one object: the arguments of a tool, its result, or an
// object inside them. It is both what is listed and what is enforced.
type Schema struct {
	Fields []*Field // in the order of the struct
}

// A Field is one property of a Schema.
type Field struct {
	Name     string
	Doc      string
	Optional bool
	Default  any // value that an absent argument gets; nil = none
	Min, Max *int64
	MinLen   *int
	MaxLen   *int
	Enum     []string
	Known    []string // listed as the enum, but not enforced: the tool itself refuses other values
	Also     string   // another name that is accepted and not listed
	NoNUL    bool     // NUL is refused, for what the system takes as a path or argument
	Number   bool     // whole numbers are listed as "number", for APIs that do so
	Nullable bool     // null is a value: a pointer that is never left out

	kind   kind
	elem   *Field  // of lists and maps
	object *Schema // of objects
	index  []int   // in the struct
}

type kind string

const (
	kindString  kind = "string"
	kindBool    kind = "boolean"
	kindInteger kind = "integer"
	kindNumber  kind = "number"
	kindList    kind = "array"
	kindMap     kind = "object of strings"
	kindObject  kind = "object"
)

// Field returns the property of that name, or nil.
func (s *Schema) Field(name string) *Field {
	for _, f := range s.Fields {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// Remove drops a property, for arguments that only some transports have.
func (s *Schema) Remove(name string) {
	s.Fields = slices.DeleteFunc(s.Fields, func(f *Field) bool { return f.Name == name })
}

// names returns the property names in order.
func (s *Schema) names() []string {
	names := make([]string, len(s.Fields))
	for i, f := range s.Fields {
		names[i] = f.Name
	}
	return names
}

// clone copies the fields, so that one server's changes stay its own.
func (s *Schema) clone() *Schema {
	c := &Schema{Fields: make([]*Field, len(s.Fields))}
	for i, f := range s.Fields {
		copied := *f
		c.Fields[i] = &copied
	}
	return c
}

// schemaOf derives the schema of a struct type and panics on what it does not know.
func schemaOf(t reflect.Type) *Schema {
	if t.Kind() != reflect.Struct {
		panic(fmt.Sprintf("tools: %s is not a struct", t))
	}
	s := &Schema{}
	for _, sf := range reflect.VisibleFields(t) {
		name, opts, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if sf.Anonymous || name == "-" {
			continue
		}
		if name == "" || !sf.IsExported() {
			panic(fmt.Sprintf("tools: field %s.%s needs a json name", t, sf.Name))
		}
		f := fieldOf(sf.Type, sf.Tag)
		f.Name, f.index = name, sf.Index
		f.Nullable = sf.Type.Kind() == reflect.Pointer && opts != "omitempty"
		f.Optional = f.Optional || opts == "omitempty" || f.Default != nil
		if f.Doc == "" {
			panic(fmt.Sprintf("tools: field %s.%s needs a doc tag", t, sf.Name))
		}
		s.Fields = append(s.Fields, f)
	}
	return s
}

func fieldOf(t reflect.Type, tag reflect.StructTag) *Field {
	f := &Field{Doc: tag.Get("doc")}
	if t.Kind() == reflect.Pointer {
		f.Optional, t = true, t.Elem()
	}
	f.setKind(t)
	f.setBounds(tag)
	if f.NoNUL && f.elem != nil {
		f.elem.NoNUL = true
	}
	return f
}

func (f *Field) setKind(t reflect.Type) {
	switch t.Kind() {
	case reflect.String:
		f.kind = kindString
	case reflect.Bool:
		f.kind = kindBool
	case reflect.Int, reflect.Int64:
		f.kind = kindInteger
	case reflect.Float64:
		f.kind = kindNumber
	case reflect.Slice:
		f.kind, f.elem = kindList, fieldOf(t.Elem(), "")
	case reflect.Map:
		f.kind, f.elem = kindMap, fieldOf(t.Elem(), "")
	case reflect.Struct:
		f.kind, f.object = kindObject, schemaOf(t)
	default:
		panic(fmt.Sprintf("tools: no schema for %s", t))
	}
}

func (f *Field) setBounds(tag reflect.StructTag) {
	f.Min, f.Max = tagInt[int64](tag, "min"), tagInt[int64](tag, "max")
	f.MinLen, f.MaxLen = tagInt[int](tag, "minLength"), tagInt[int](tag, "maxLength")
	f.NoNUL = tag.Get("nul") == "no"
	f.Number = tag.Get("type") == "number"
	f.Also = tag.Get("also")
	if enum := tag.Get("enum"); enum != "" {
		f.Enum = strings.Split(enum, ",")
	}
	if def, ok := tag.Lookup("default"); ok {
		f.Default = f.parseDefault(def)
	}
	if f.MaxLen != nil {
		f.Doc = strings.ReplaceAll(f.Doc, "{maxLength}", strconv.Itoa(*f.MaxLen))
	}
}

func (f *Field) parseDefault(text string) any {
	if f.kind == kindString {
		return text
	}
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		panic(fmt.Sprintf("tools: default %q: %v", text, err))
	}
	return v
}

func tagInt[T int | int64](tag reflect.StructTag, key string) *T {
	text, ok := tag.Lookup(key)
	if !ok {
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("tools: tag %s:%q: %v", key, text, err))
	}
	v := T(n)
	return &v
}
