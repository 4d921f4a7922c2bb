package conf

import (
	"errors"
	"fmt"
	"strings"
)

// Bind is one [[bind]]: a column that gets numbers from a sequence if a statement gives it no
// value.
type Bind struct {
	// required; `table.column` in every schema, or `schema.table.column`, spelled as on the
	// servers; a name with a dot in back-quotes. One column of a table
	Column ColumnName `toml:"column" reload:"now"`
	// required; the name of the sequence
	Sequence string `toml:"sequence" reload:"now"`
}

// ColumnName names a column as in SQL: "photos.id" in any schema, "album0.photos.id" in one. A part
// that contains a dot is in back-quotes.
type ColumnName string

// Split returns the parts of the name. An empty schema means any.
func (c ColumnName) Split() (schema, table, column string, err error) {
	var parts []string
	rest := string(c)
	for {
		var part string
		if part, rest, err = cutName(rest); err != nil {
			return "", "", "", err
		}
		parts = append(parts, part)
		if rest == "" {
			break
		}
		rest = rest[1:]
	}
	switch len(parts) {
	case 2:
		return "", parts[0], parts[1], nil
	case 3:
		return parts[0], parts[1], parts[2], nil
	}
	return "", "", "", errors.New(`must be table.column or schema.table.column`)
}

// cutName cuts a name, quoted or not, off the start of s. rest is empty or begins with a dot.
func cutName(s string) (name, rest string, err error) {
	if !strings.HasPrefix(s, "`") {
		name, rest = s, ""
		if i := strings.IndexByte(s, '.'); i >= 0 {
			name, rest = s[:i], s[i:]
		}
	} else {
		i := 1
		for {
			end := strings.IndexByte(s[i:], '`')
			if end < 0 {
				return "", "", errors.New("has a back-quote that is not closed")
			}
			name += s[i : i+end]
			i += end + 1
			if i == len(s) || s[i] != '`' {
				break
			}
			name += "`"
			i++
		}
		if rest = s[i:]; rest != "" && rest[0] != '.' {
			return "", "", errors.New("must have a dot behind a name in back-quotes")
		}
	}
	switch {
	case name == "":
		return "", "", errors.New("has an empty name")
	case !isIdentifier(name):
		return "", "", fmt.Errorf("has a name that is longer than %d characters or ends in a space", maxIdentifier)
	}
	return name, rest, nil
}

func (c *Config) checkBinds(p *checker) {
	type table struct{ schema, name string }
	bound := make(map[table]string) // the key in the file, for messages
	for i, b := range c.Binds {
		key := elementKey("bind", i, string(b.Column))
		if b.Sequence == "" {
			p.add(key+".sequence", "is missing")
		}
		if b.Column == "" {
			p.add(key+".column", "is missing")
			continue
		}
		schema, name, _, err := b.Column.Split()
		if err != nil {
			p.add(key+".column", `%v, as in "photos.id" or "album0.photos.id", is %q`, err, b.Column)
			continue
		}
		if first, twice := bound[table{schema, name}]; twice {
			p.add(key+".column", "one column of a table can be bound, and %s names the same table", first)
		}
		bound[table{schema, name}] = key
	}
	if len(c.Binds) > 0 && len(c.Shards) == 0 {
		p.add("bind", "needs a [[shard]]: without one no statement reaches a table")
	}
}
