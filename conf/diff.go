package conf

import (
	"fmt"
	"reflect"
	"strings"
)

// Setting is a key and its value.
type Setting struct {
	Key   string // `max_connections`, `user["app"].schema`, `sequence.server #1.address`
	Value string // as written in the file: `10000`, `"album0"`; a password is [redacted]
	When  When   // when a change takes effect
}

// Settings returns all keys of a configuration, in order. For elements of lists it returns only
// keys with a value.
func Settings(c *Config) []Setting {
	return settingsOf(reflect.ValueOf(*c), "", false)
}

func settingsOf(v reflect.Value, prefix string, element bool) (all []Setting) {
	eachKey(v, prefix, "", func(k keyValue) {
		switch {
		case !k.table:
			if value := k.written(); !element || value != "" {
				all = append(all, Setting{k.name, value, k.when})
			}
		case k.value.Kind() == reflect.Slice:
			for i, e := range elements(k) {
				all = append(all, settingsOf(k.value.Index(i), e+".", true)...)
			}
		default:
			all = append(all, settingsOf(k.value, k.name+".", element)...)
		}
	})
	return all
}

// Change is a difference between two configurations.
type Change struct {
	Key string // as in Setting; `user["app"]` for an element that only one of them has
	// Old and New are the values as written in the file, or "". Passwords are [redacted], even
	// though they differ.
	Old, New string
	When     When // when it takes effect
}

// Diff returns the differences between two configurations, in the order of the file. It matches
// elements of lists by their names, and sequence servers by their addresses, regardless of order.
func Diff(before, after *Config) []Change {
	return diff(reflect.ValueOf(*before), reflect.ValueOf(*after), "", "")
}

func diff(before, after reflect.Value, prefix string, outer When) (changes []Change) {
	var news []keyValue
	eachKey(after, prefix, outer, func(k keyValue) { news = append(news, k) })
	i := 0
	eachKey(before, prefix, outer, func(was keyValue) {
		is := news[i]
		i++
		switch {
		case !was.table:
			if !was.same(is) {
				changes = append(changes, Change{was.name, was.written(), is.written(), was.when})
			}
		case was.value.Kind() == reflect.Slice:
			changes = append(changes, diffLists(was, is)...)
		default:
			changes = append(changes, diff(was.value, is.value, was.name+".", was.when)...)
		}
	})
	return changes
}

func diffLists(was, is keyValue) (changes []Change) {
	names, next := elements(was), elements(is)
	pairs, added := pairsOf(was, is)
	for i, j := range pairs {
		if j < 0 {
			changes = append(changes, Change{names[i], written(was.value.Index(i)), "", was.when})
			continue
		}
		outer := When("")
		if was.when == WhenRestart && identity(was.value.Index(i)) != identity(is.value.Index(j)) {
			outer = WhenRestart // a replacement takes effect together with what it replaces
		}
		changes = append(changes, diff(was.value.Index(i), is.value.Index(j), names[i]+".", outer)...)
	}
	for _, j := range added {
		changes = append(changes, Change{next[j], "", written(is.value.Index(j)), was.when})
	}
	return changes
}

// pairsOf matches the elements of two lists, first by identity and then by name. pairs holds for
// each element of was the index in is, or -1. added holds the indexes of elements that only is has.
func pairsOf(was, is keyValue) (pairs, added []int) {
	names, next := elements(was), elements(is)
	pairs = make([]int, len(names))
	taken := make([]bool, len(next))
	match := func(same func(i, j int) bool) {
		for i := range pairs {
			for j := range next {
				if pairs[i] < 0 && !taken[j] && same(i, j) {
					pairs[i], taken[j] = j, true
				}
			}
		}
	}
	for i := range pairs {
		pairs[i] = -1
	}
	match(func(i, j int) bool {
		what := identity(was.value.Index(i))
		return what != "" && what == identity(is.value.Index(j))
	})
	match(func(i, j int) bool { return names[i] == next[j] })
	for j := range next {
		if !taken[j] {
			added = append(added, j)
		}
	}
	return pairs, added
}

// identity returns the part of an element by which it is recognized, or "" if that is its name.
func identity(element reflect.Value) string {
	if s, ok := element.Interface().(SequenceServer); ok {
		return fmt.Sprint(s.Addresses())
	}
	return ""
}

// Reloaded returns the configuration in force after a proxy with the configuration before has read
// after. It is after, with the old values of keys that need a restart. A list that needs a restart
// keeps its elements, but these get new values for their keys that need none. The result is not
// validated.
func Reloaded(before, after *Config) *Config {
	c := *after
	keepRestart(reflect.ValueOf(*before), reflect.ValueOf(&c).Elem())
	return &c
}

func keepRestart(from, to reflect.Value) {
	for i := range to.NumField() {
		field := to.Type().Field(i)
		switch {
		case When(field.Tag.Get("reload")) == WhenRestart && tableType(field.Type) != nil:
			to.Field(i).Set(keepElements(keyValue{name: field.Name, value: from.Field(i)}, keyValue{name: field.Name, value: to.Field(i)}))
		case When(field.Tag.Get("reload")) == WhenRestart:
			to.Field(i).Set(from.Field(i))
		case field.IsExported() && tableType(field.Type) != nil && field.Type.Kind() == reflect.Struct:
			keepRestart(from.Field(i), to.Field(i))
		}
	}
}

// keepElements returns the list from. Keys that need no restart have the values of the same
// elements in to.
func keepElements(from, to keyValue) reflect.Value {
	kept := reflect.MakeSlice(from.value.Type(), from.value.Len(), from.value.Len())
	pairs, _ := pairsOf(from, to)
	for i, j := range pairs {
		was := from.value.Index(i)
		kept.Index(i).Set(was)
		if j >= 0 && identity(was) == identity(to.value.Index(j)) {
			kept.Index(i).Set(to.value.Index(j))
			keepRestart(was, kept.Index(i))
		}
	}
	return kept
}

// keyValue is a key of a struct and its value.
type keyValue struct {
	name     string
	value    reflect.Value
	when     When
	table    bool   // a table or a list of tables
	standard string // the meaning of the zero value, if it has another
}

// eachKey calls f for each key of a struct.
func eachKey(v reflect.Value, prefix string, outer When, f func(keyValue)) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		switch {
		case field.Anonymous:
			eachKey(v.Field(i), prefix, outer, f)
		case field.IsExported():
			f(keyValue{
				name: prefix + field.Tag.Get("toml"), value: v.Field(i), when: When(field.Tag.Get("reload")).within(outer),
				table: tableType(field.Type) != nil, standard: field.Tag.Get("default"),
			})
		}
	}
}

// written returns the value as in the file, or "" for an empty text.
func (k keyValue) written() string {
	if k.standard != "" && k.value.IsZero() {
		return k.standard
	}
	if isEmptyText(k.value) {
		return ""
	}
	return written(k.value)
}

func (k keyValue) same(other keyValue) bool {
	if a, ok := k.value.Interface().(Secret); ok {
		return a.Reveal() == other.value.Interface().(Secret).Reveal()
	}
	return k.written() == other.written()
}

// elements returns the names of a list's elements for messages.
func elements(k keyValue) []string {
	names := make([]string, k.value.Len())
	for i := range names {
		name := ""
		switch e := k.value.Index(i).Interface().(type) {
		case User:
			name = e.Name
		case Shard:
			name = e.Name
		case Ticket:
			name = e.Table
		case Bind:
			name = string(e.Column)
		}
		names[i] = elementKey(k.name, i, name)
	}
	return names
}

// writtenTable writes a table on one line, as in the file, with the keys that have a value.
func writtenTable(v reflect.Value) string {
	var keys []string
	eachKey(v, "", "", func(k keyValue) {
		if value := k.written(); !k.value.IsZero() && value != "" {
			keys = append(keys, k.name+" = "+value)
		}
	})
	return "{" + strings.Join(keys, ", ") + "}"
}
