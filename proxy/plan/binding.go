package plan

import "strings"

// Binding is a column that gets its numbers from a sequence if a statement gives it none. The names
// are in UTF-8.
type Binding struct {
	Schema     string // "" is every schema
	Table      string
	Column     string
	Sequence   string
	Configured bool // by the configuration, which counts before owners of sequences
	// Texts reports whether the keys are texts, or bytes if Bytes is set, as far as that is known.
	Texts, Bytes bool
}

// Bindings are the bound columns, by their table's name in lower case. They do not change once they
// are in use.
type Bindings map[string][]Binding

// Add appends a binding. If several name a table, the first one counts.
func (b Bindings) Add(one Binding) {
	key := strings.ToLower(one.Table)
	b[key] = append(b[key], one)
}

// Named returns the bindings of tables with this name, in any letter case. name is in UTF-8, or in
// a character set that includes ASCII.
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

// BindingOf returns the binding of a table from list, or nil. A configured one counts before an
// owner, and then one with the schema before one for all schemas. folds says that letter case does
// not matter.
func BindingOf(list []Binding, schema, table string, folds bool) *Binding {
	same := func(a, b string) bool { return a == b || folds && strings.EqualFold(a, b) }
	var found *Binding
	for i := range list {
		b := &list[i]
		if !same(b.Table, table) || b.Schema != "" && !same(b.Schema, schema) {
			continue
		}
		if found == nil || b.Configured == found.Configured && found.Schema == "" && b.Schema != "" {
			found = b
		}
	}
	return found
}

// Renamed refuses rows for a table that lacks the bound column, if b names the schema. That is the
// bound table then, and its key has another name: AUTO_INCREMENT of each shard would give the keys.
// Without a schema it is another table of that name.
func (b *Binding) Renamed(of *Columns) Verdict {
	if b.Schema == "" || of.Temporary {
		return Verdict{}
	}
	return notSupported("table %s.%s has no column %s, which is bound to sequence %s. If it was renamed, say ALTER SEQUENCE %[4]s OWNED BY %[1]s.%[2]s.NAME with its new name, or change the [[bind]]",
		b.Schema, b.Table, b.Column, b.Sequence)
}
