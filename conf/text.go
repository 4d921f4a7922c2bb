package conf

import (
	"reflect"
	"slices"
	"strings"
)

// Lines writes a configuration as a file. It has all keys outside of lists of tables, but none with
// a value that a file may not have. Elements of lists have only the keys with a value. [redacted],
// without quotes, replaces a password in the file. So no proxy can start with these lines by
// mistake.
func Lines(c *Config) []string {
	lines := linesOf(reflect.ValueOf(*c), "", false)
	return slices.DeleteFunc(lines, func(line string) bool { return line == "" })
}

// linesOf writes a table: first its own keys, then the tables in it.
func linesOf(v reflect.Value, prefix string, element bool) (lines []string) {
	var tables []keyValue
	given := make(map[string]bool)
	eachKey(v, prefix, "", func(k keyValue) { given[k.name] = !k.value.IsZero() })
	eachKey(v, prefix, "", func(k keyValue) {
		word := k.name[strings.LastIndexByte(k.name, '.')+1:]
		switch {
		case k.table:
			tables = append(tables, k)
		case (element || mustNotBeEmpty(word)) && k.value.IsZero():
		case given[k.name+"_file"] || given[k.name+"_env"]: // these say where the value is
		default:
			value := written(k.value)
			if k.standard != "" && k.value.IsZero() {
				value = k.standard
			}
			lines = append(lines, word+" = "+value)
		}
	})
	for _, k := range tables {
		if k.value.Kind() != reflect.Slice {
			lines = append(append(lines, "["+k.name+"]"), linesOf(k.value, k.name+".", element)...)
			continue
		}
		for i := range k.value.Len() {
			lines = append(append(lines, "[["+k.name+"]]"), linesOf(k.value.Index(i), k.name+".", true)...)
		}
	}
	return lines
}
