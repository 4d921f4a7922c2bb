package plan

import "strings"

// Binding is a column that gets its numbers from a sequence where a statement gives it
// none. All are in UTF-8.
type Binding struct {
	Schema   string // "" is every schema
	Table    string
	Column   string
	Sequence string
	// Texts: its keys are texts, or with Bytes bytes, as far as that is known
	Texts, Bytes bool
}

// Bindings are the columns that are bound, by their table's name in lower case. They do
// not change.
type Bindings map[string][]Binding

// Add appends a binding. Of several that name a table the first counts.
func (b Bindings) Add(one Binding) {
	key := strings.ToLower(one.Table)
	b[key] = append(b[key], one)
}

// Named returns those of the tables with this name, in any letter case. name is in
// UTF-8, or any character set that has ASCII at its place.
func (b Bindings) Named(name []byte) []Binding {
	var lower [64]byte
	if len(name) > len(lower) || !ASCII(name) {
		return b[strings.ToLower(string(name))]
	}
	for i, c := range name {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		lower[i] = c
	}
	return b[string(lower[:len(name)])]
}

// BindingOf returns the one of list that is for a table, or nil. One that names the
// schema counts more than one for all. With folds, letter case means nothing.
func BindingOf(list []Binding, schema, table string, folds bool) *Binding {
	same := func(a, b string) bool { return a == b || folds && strings.EqualFold(a, b) }
	var found *Binding
	for i := range list {
		b := &list[i]
		if !same(b.Table, table) || b.Schema != "" && !same(b.Schema, schema) {
			continue
		}
		if found == nil || found.Schema == "" && b.Schema != "" {
			found = b
		}
	}
	return found
}
