package conf

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/BurntSushi/toml"
)

// Key is a key of the file, or a table.
type Key struct {
	Name    string   // "sequence.server.address"; of a table "sequence.server"
	Table   bool     // it holds other keys, which follow
	Type    string   // "string", "integer", "duration" ...; "" of a table
	Default string   // as the file would have it; "" where there is none
	OneOf   []string // all values that it may have; nil: not only a few
	When    When     // "" of a table that is no list

	// Where it stands in the code.
	Struct, Field string
}

// Keys are all keys of the file, in order. They are shared and not to be changed.
func Keys() []Key { return knownKeys() }

var knownKeys = sync.OnceValue(func() []Key {
	return keysOf(reflect.ValueOf(*Default()), "")
})

// keysOf lists the keys of a struct by its tags, with the values in v as defaults.
func keysOf(v reflect.Value, prefix string) (keys []Key) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if field.Anonymous {
			keys = append(keys, keysOf(v.Field(i), prefix)...)
			continue
		}
		if !field.IsExported() {
			continue
		}
		key := Key{
			Name: prefix + field.Tag.Get("toml"), When: When(field.Tag.Get("reload")),
			Struct: v.Type().Name(), Field: field.Name,
		}
		if table := tableType(field.Type); table != nil {
			key.Table = true
			value := v.Field(i)
			if value.Kind() == reflect.Slice { // its elements have no default but the zero value
				value = reflect.Zero(table)
			}
			keys = append(append(keys, key), keysOf(value, key.Name+".")...)
			continue
		}
		if oneOf := field.Tag.Get("oneof"); oneOf != "" {
			key.OneOf = strings.Split(oneOf, ",")
		}
		key.Type = typeOf(field.Type)
		if key.Default = field.Tag.Get("default"); key.Default == "" && !isEmptyText(v.Field(i)) {
			key.Default = written(v.Field(i))
		}
		keys = append(keys, key)
	}
	return keys
}

// typeOf is a type in the words of the page.
func typeOf(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[Duration]():
		return "duration"
	case t == reflect.TypeFor[Size]():
		return "size"
	case t.Kind() == reflect.Slice:
		return "list of " + typeOf(t.Elem()) + "s"
	case t.Kind() == reflect.Bool:
		return "boolean"
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		return "integer"
	}
	return "string"
}

// isEmptyText says whether v is the empty string, or the empty password.
func isEmptyText(v reflect.Value) bool {
	if s, ok := v.Interface().(Secret); ok {
		return s.IsEmpty()
	}
	return v.Kind() == reflect.String && v.Len() == 0
}

// written is a value as the file would have it. It does not tell secrets.
func written(v reflect.Value) string {
	switch value := v.Interface().(type) {
	case Secret:
		return redacted
	case Duration, Size:
		return fmt.Sprintf("%q", fmt.Sprint(value))
	}
	switch v.Kind() {
	case reflect.String:
		return fmt.Sprintf("%q", v.String())
	case reflect.Slice:
		elements := make([]string, v.Len())
		for i := range elements {
			elements[i] = written(v.Index(i))
		}
		return "[" + strings.Join(elements, ", ") + "]"
	case reflect.Struct:
		return writtenTable(v)
	}
	return fmt.Sprint(v.Interface())
}

// tableType is the struct that a key holds as a table or a list of tables, or nil.
func tableType(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return nil
	}
	return t
}

// unknownKeys returns a problem for each key that does not exist, and one only
// for a whole table. The decoder does not do: it takes LISTEN for listen.
func unknownKeys(keys []toml.Key) []string {
	known := make(map[string]bool)
	for _, key := range knownKeys() {
		known[key.Name] = true
	}
	var problems []string
	reported := make(map[string]bool)
	for _, key := range keys {
		for depth := range key {
			name := strings.Join(key[:depth+1], ".")
			if known[name] {
				continue
			}
			if !reported[name] {
				reported[name] = true
				problems = append(problems, unknownKey(name))
			}
			break
		}
	}
	return problems
}

// renamedKeys are keys of earlier versions, with those that took their place.
var renamedKeys = map[string]string{
	"shutdown_timeout": "drain.timeout",
}

// unknownKey words the problem with the key that was probably meant.
func unknownKey(name string) string {
	problem := fmt.Sprintf("unknown key %q", toml.Key(strings.Split(name, ".")).String())
	if now := renamedKeys[name]; now != "" {
		return problem + fmt.Sprintf("; it is %q now", now)
	}
	if near := nearestKey(name); near != "" {
		problem += fmt.Sprintf("; did you mean %q?", near)
	}
	return problem
}

// nearestKey returns the known key that is fewest edits away from name, or the
// one that has the same last word in another table, or "".
func nearestKey(name string) string {
	best, bestEdits := "", 1+len(name)/3
	for _, key := range knownKeys() {
		if n := edits(strings.ToLower(name), key.Name); n < bestEdits {
			best, bestEdits = key.Name, n
		}
	}
	if best != "" {
		return best
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	for _, key := range knownKeys() {
		if key.Name == last || strings.HasSuffix(key.Name, "."+last) {
			return key.Name
		}
	}
	return ""
}

// edits is the Levenshtein distance of a and b in bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
