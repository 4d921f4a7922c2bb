package conf

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/BurntSushi/toml"
)

// knownKeys are all keys of the file in order, with their tables: "sequence",
// "sequence.cache", "sequence.server", "sequence.server.address".
var knownKeys = sync.OnceValue(func() []string {
	return keysOf(reflect.TypeFor[Config](), "")
})

// keysOf lists the keys of a struct by its toml tags.
func keysOf(t reflect.Type, prefix string) []string {
	var keys []string
	for i := range t.NumField() {
		field := t.Field(i)
		if field.Anonymous {
			keys = append(keys, keysOf(field.Type, prefix)...)
			continue
		}
		if !field.IsExported() {
			continue
		}
		key := prefix + field.Tag.Get("toml")
		keys = append(keys, key)
		if table := tableType(field.Type); table != nil {
			keys = append(keys, keysOf(table, key+".")...)
		}
	}
	return keys
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
		known[key] = true
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

// unknownKey words the problem with the key that was probably meant.
func unknownKey(name string) string {
	problem := fmt.Sprintf("unknown key %q", toml.Key(strings.Split(name, ".")).String())
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
		if n := edits(strings.ToLower(name), key); n < bestEdits {
			best, bestEdits = key, n
		}
	}
	if best != "" {
		return best
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	for _, key := range knownKeys() {
		if key == last || strings.HasSuffix(key, "."+last) {
			return key
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
