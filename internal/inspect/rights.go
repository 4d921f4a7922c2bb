package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Rights are what SHOW GRANTS says of an account, roles that are active included.
type Rights struct {
	global  map[string]bool
	schemas []scope // by pattern
	tables  []scope
	revoked []scope // of a schema, from what is granted on all (MySQL's partial_revokes)
	grants  bool    // WITH GRANT OPTION on everything
}

type scope struct {
	schema, table string
	privileges    map[string]bool
}

func readRights(ctx context.Context, ask Ask, mariaDB bool) (*Rights, error) {
	text := "SHOW GRANTS"
	if !mariaDB { // MariaDB tells those of the role by itself
		rows, err := ask(ctx, "SELECT CURRENT_ROLE()")
		if err == nil && len(rows) == 1 && rows[0][0] != "" && rows[0][0] != "NONE" {
			text += " FOR CURRENT_USER() USING " + rows[0][0]
		}
	}
	rows, err := ask(ctx, text)
	if err != nil {
		return nil, fmt.Errorf("read grants: %w", err)
	}
	r := &Rights{global: make(map[string]bool)}
	for _, row := range rows {
		r.add(row[0])
	}
	return r, nil
}

// add reads one line of SHOW GRANTS. What it does not know, such as PROXY and routines, it leaves out.
func (r *Rights) add(line string) {
	w := words{rest: line}
	verb := w.next()
	privileges := make(map[string]bool)
	var name []string
	for word := w.next(); ; word = w.next() {
		switch {
		case word == "":
			return // a role: GRANT `r` TO ...
		case word == "," || strings.EqualFold(word, "ON"):
			if privilege := strings.ToUpper(strings.Join(name, " ")); privilege != "" && !strings.ContainsAny(privilege, "`(\"") {
				privileges[strings.TrimSuffix(privilege, " PRIVILEGES")] = true
			}
			name = nil
		default:
			name = append(name, word)
		}
		if strings.EqualFold(word, "ON") {
			break
		}
	}
	schema := w.next()
	switch strings.ToUpper(schema) {
	case "TABLE":
		schema = w.next()
	case "FUNCTION", "PROCEDURE", "PACKAGE":
		return
	}
	if w.next() != "." {
		return
	}
	table := w.next()
	on := scope{schema: unquote(schema), table: unquote(table), privileges: privileges}
	switch {
	case strings.EqualFold(verb, "REVOKE"):
		r.revoked = append(r.revoked, on)
	case !strings.EqualFold(verb, "GRANT"):
	case schema == "*" && table == "*":
		for p := range privileges {
			r.global[p] = true
		}
		for before, word := "", w.next(); word != ""; before, word = word, w.next() {
			r.grants = r.grants || strings.EqualFold(before, "GRANT") && strings.EqualFold(word, "OPTION")
		}
	case table == "*":
		r.schemas = append(r.schemas, on)
	default:
		r.tables = append(r.tables, on)
	}
}

// words cuts a line into words, quoted names with their quotes, what stands in parentheses, commas and dots.
type words struct{ rest string }

func (w *words) next() string {
	w.rest = strings.TrimLeft(w.rest, " ")
	if w.rest == "" {
		return ""
	}
	end := 1
	switch c := w.rest[0]; c {
	case ',', '.', '*', '@':
	case '`', '"', '\'':
		for end < len(w.rest) {
			if w.rest[end] == c {
				if end+1 >= len(w.rest) || w.rest[end+1] != c {
					end++
					break
				}
				end++
			}
			end++
		}
	case '(':
		inner := words{rest: w.rest[1:]}
		for word := inner.next(); word != "" && word != ")"; word = inner.next() {
		}
		end = len(w.rest) - len(inner.rest)
	case ')':
	default:
		if end = strings.IndexAny(w.rest, " ,.*@`\"'()"); end < 0 {
			end = len(w.rest)
		}
	}
	word := w.rest[:end]
	w.rest = w.rest[end:]
	return word
}

func unquote(name string) string {
	if len(name) >= 2 && (name[0] == '`' || name[0] == '"') {
		q := name[:1]
		return strings.ReplaceAll(name[1:len(name)-1], q+q, q)
	}
	return name
}

// spelled are the names that a privilege has had.
var spelled = map[string][]string{
	"REPLICATION STATUS": {"REPLICATION CLIENT", "SLAVE MONITOR", "REPLICA MONITOR", "BINLOG MONITOR", "SUPER"},
}

func has(set map[string]bool, privilege string) bool { return set[privilege] || set["ALL"] }

// On says whether the account has a privilege on a table, for table "" on a schema, and for both "" on the server.
func (r *Rights) On(schema, table, privilege string) bool {
	if names := spelled[privilege]; names != nil {
		return slices.ContainsFunc(names, func(p string) bool { return has(r.global, p) })
	}
	if has(r.global, privilege) && !slices.ContainsFunc(r.revoked, func(s scope) bool { return s.schema == schema && has(s.privileges, privilege) }) {
		return true
	}
	if schema == "" {
		return false
	}
	// Where a name is granted on as it is, patterns that fit it, too, do not count.
	literal := func(s scope) bool { return plain(s.schema) == schema }
	fits := func(s scope) bool { return like(s.schema, schema) }
	if slices.ContainsFunc(r.schemas, literal) {
		fits = literal
	}
	for _, s := range r.schemas {
		if fits(s) && has(s.privileges, privilege) {
			return true
		}
	}
	for _, s := range r.tables {
		if table != "" && s.schema == schema && s.table == table && has(s.privileges, privilege) {
			return true
		}
	}
	return false
}

// plain is the name that a pattern without wildcards means; "" if it has some.
func plain(pattern string) string {
	var name strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\' && i+1 < len(pattern):
			i++
			name.WriteByte(pattern[i])
		case c == '%':
			return ""
		default:
			name.WriteByte(c) // an underscore, most likely, means itself
		}
	}
	return name.String()
}

// like says whether a name fits a pattern of a grant.
func like(pattern, name string) bool {
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '%':
			for j := 0; j <= len(name); j++ {
				if like(pattern[i+1:], name[j:]) {
					return true
				}
			}
			return false
		case name == "":
			return false
		case c == '\\' && i+1 < len(pattern):
			i++
			if pattern[i] != name[0] {
				return false
			}
		case c != '_' && c != name[0]:
			return false
		}
		name = name[1:]
	}
	return name == ""
}

// powerful are privileges on the whole server that neither a proxy nor an application needs.
var powerful = []string{
	"SUPER", "FILE", "SHUTDOWN", "CREATE USER", "RELOAD", "CREATE TABLESPACE", "SYSTEM_VARIABLES_ADMIN", "SYSTEM_USER", "ROLE_ADMIN", "SET_USER_ID", "SET_ANY_DEFINER",
	"BINLOG ADMIN", "BINLOG_ADMIN", "READ_ONLY ADMIN", "READ ONLY ADMIN", "SET USER", "FEDERATED ADMIN", "REPLICATION SLAVE ADMIN", "REPLICATION MASTER ADMIN",
	"BINLOG REPLAY", "REPLICATION_SLAVE_ADMIN", "GROUP_REPLICATION_ADMIN", "CLONE_ADMIN", "PERSIST_RO_VARIABLES_ADMIN",
}

// CheckExcess warns of rights on the whole server that the account has and should not have. needed are statements that give it what it does need.
func (s *Server) CheckExcess(f *Findings, needed ...string) {
	r := s.Rights
	var found []string
	for _, p := range powerful {
		if r.global[p] {
			found = append(found, p)
		}
	}
	everything := r.global["ALL"] || len(found) > 5
	if !everything && len(found) == 0 && !r.grants {
		return
	}
	what := strings.Join(found, ", ") + " ON *.*"
	mend := fmt.Sprintf("REVOKE %s ON *.* FROM %s", strings.Join(found, ", "), s.Account)
	if everything {
		what, mend = "ALL PRIVILEGES ON *.*", fmt.Sprintf("REVOKE ALL PRIVILEGES ON *.* FROM %s", s.Account)
	}
	var all []string
	if len(found) > 0 || everything {
		all = append(append(all, needed...), mend)
	} else {
		what = ""
	}
	if r.grants {
		what = strings.TrimPrefix(what+" and GRANT OPTION ON *.*", " and ")
		all = append(all, "REVOKE GRANT OPTION ON *.* FROM "+s.Account.String())
	}
	f.Warn("rights", fmt.Sprintf("%s has far more rights than it needs: %s", s.Account, what), "", all...)
}
