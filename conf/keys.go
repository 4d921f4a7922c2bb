package conf

import (
	"encoding"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/BurntSushi/toml"
)

// Key is a key of the file, or a table.
type Key struct {
	Name    string   // "sequence.server.address"; for a table "sequence.server"
	Table   bool     // a table: its keys follow
	Type    string   // "string", "integer", "duration" ...; "" for a table
	Default string   // as written in the file, or ""
	OneOf   []string // all allowed values; nil if there are not only a few
	When    When     // "" for a table that is no list

	// The struct and field in the code.
	Struct, Field string
}

// Keys returns all keys of the file, in order. The slice is shared: do not change it.
func Keys() []Key { return allKeys() }

var allKeys = sync.OnceValue(func() []Key {
	return keysOf(reflect.ValueOf(*Default()), "")
})

// keysOf lists the keys of a struct by its tags. The values in v are the defaults.
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
			if value.Kind() == reflect.Slice { // an element's only default is the zero value
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

// typeOf names a type in the words of the page.
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

// isEmptyText says whether v is the empty string or the empty password.
func isEmptyText(v reflect.Value) bool {
	if s, ok := v.Interface().(Secret); ok {
		return s.IsEmpty()
	}
	return v.Kind() == reflect.String && v.Len() == 0
}

// written returns a value as written in the file. It hides secrets.
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

// tableType returns the struct of a table or a list of tables, or nil for another key.
func tableType(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return nil
	}
	return t
}

// unknownKeys returns a problem for each unknown key, but only one for a whole table. The decoder's
// own check is not enough: it accepts LISTEN for listen.
func unknownKeys(keys []toml.Key) []string {
	exists := make(map[string]bool)
	for _, key := range allKeys() {
		exists[key.Name] = true
	}
	var problems []string
	reported := make(map[string]bool)
	for _, key := range keys {
		for depth := range key {
			name := strings.Join(key[:depth+1], ".")
			if exists[name] {
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

// mustNotBeEmpty reports whether a key with this last word says where a password is, or how a
// connection is secured. Its empty value, as a template may leave it, would switch that off.
func mustNotBeEmpty(word string) bool {
	return strings.HasSuffix(word, "_file") || strings.HasSuffix(word, "password_env") ||
		slices.Contains([]string{"tls", "certificate_subject", "certificate_issuer"}, word)
}

// emptyKeys returns a problem for each key in table that must not be empty, and is.
func emptyKeys(table map[string]any, prefix string) (problems []string) {
	for _, word := range slices.Sorted(maps.Keys(table)) {
		switch value := table[word].(type) {
		case string:
			if value == "" && mustNotBeEmpty(word) {
				problems = append(problems, prefix+word+": must not be empty; leave the key out to do without it")
			}
		case map[string]any:
			problems = append(problems, emptyKeys(value, prefix+word+".")...)
		case []map[string]any:
			for i, element := range value {
				problems = append(problems, emptyKeys(element, elementName(prefix+word, i, element))...)
			}
		case []any: // perhaps of tables on one line
			for i := range value {
				element, _ := value[i].(map[string]any)
				problems = append(problems, emptyKeys(element, elementName(prefix+word, i, element))...)
			}
		}
	}
	return problems
}

func elementName(list string, i int, element map[string]any) string {
	name, _ := element["name"].(string)
	return elementKey(list, i, name) + "."
}

// unknownKey describes the problem and suggests a key.
func unknownKey(name string) string {
	problem := fmt.Sprintf("unknown key %q", toml.Key(strings.Split(name, ".")).String())
	if near := nearestKey(name); near != "" {
		problem += fmt.Sprintf("; did you mean %q?", near)
	}
	return problem
}

// nearestKey returns the key with the fewest edits from name, or the key with the same last word in
// another table, or "".
func nearestKey(name string) string {
	best, bestEdits := "", 1+len(name)/3
	for _, key := range allKeys() {
		if n := edits(strings.ToLower(name), key.Name); n < bestEdits {
			best, bestEdits = key.Name, n
		}
	}
	if best != "" {
		return best
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	for _, key := range allKeys() {
		if key.Name == last || strings.HasSuffix(key.Name, "."+last) {
			return key.Name
		}
	}
	return ""
}

// edits returns the Levenshtein distance of a and b in bytes.
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
