package proxy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/statement"
)

// Where there is no server to ask, the proxy itself answers what tools ask to know what a
// server has: truly, that there are no schemas, tables and routines here, and what it knows
// of variables, character sets and sessions.

// relation is what a question about metadata is answered from.
type relation struct {
	alias   string            // what a SELECT calls it
	columns []protocol.Column // nil if they are not known
	rows    [][]any
}

// relations are those that have rows, by what metadataText calls them.
var relations = map[string]func(s *session) [][]any{
	"SHOW VARIABLES":                        (*session).variableRows,
	"SESSION_VARIABLES":                     (*session).variableRows,
	"GLOBAL_VARIABLES":                      (*session).variableRows,
	"SHOW STATUS":                           (*session).statusRows,
	"SESSION_STATUS":                        (*session).statusRows,
	"GLOBAL_STATUS":                         (*session).statusRows,
	"SHOW PROCESSLIST":                      (*session).processRows,
	"SHOW FULL PROCESSLIST":                 (*session).processRows,
	"PROCESSLIST":                           (*session).processRows,
	"SHOW CHARACTER SET":                    func(*session) [][]any { return charsetRows },
	"CHARACTER_SETS":                        func(*session) [][]any { return charsetTableRows },
	"SHOW COLLATION":                        (*session).collationRows,
	"COLLATIONS":                            (*session).collationRows,
	"COLLATION_CHARACTER_SET_APPLICABILITY": (*session).applicabilityRows,
}

// showNames are the other words for a SHOW.
var showNames = map[string]string{
	"SCHEMAS": "DATABASES", "CHARSET": "CHARACTER SET", "CHAR SET": "CHARACTER SET", "STORAGE ENGINES": "ENGINES",
	"FUNCTION STATUS": "PROCEDURE STATUS", "PACKAGE STATUS": "PROCEDURE STATUS", "PACKAGE BODY STATUS": "PROCEDURE STATUS",
	"BINLOG STATUS": "MASTER STATUS", "REPLICA HOSTS": "SLAVE HOSTS", "ALL REPLICAS STATUS": "ALL SLAVES STATUS",
}

// What the answers of the proxy are written in, as SHOW tells of it.
const (
	ownCharset    = "utf8mb4"
	ownCollation  = "utf8mb4_general_ci"
	ownCharsetIs  = "UTF-8 Unicode"
	ownCharsetMax = 4
)

var (
	charsetRows      = [][]any{{ownCharset, ownCharsetIs, ownCollation, int64(ownCharsetMax)}}
	charsetTableRows = [][]any{{ownCharset, ownCollation, ownCharsetIs, int64(ownCharsetMax)}}
)

func (s *session) collationRows() [][]any {
	row := []any{ownCollation, ownCharset, int64(charsetUTF8MB4), "Yes", "Yes", int64(1)}
	if !s.likeMariaDB() {
		row = append(row, "PAD SPACE")
	}
	return [][]any{row}
}

func (s *session) applicabilityRows() [][]any {
	if !s.likeMariaDB() {
		return [][]any{{ownCollation, ownCharset}}
	}
	return [][]any{{ownCollation, ownCharset, ownCollation, int64(charsetUTF8MB4), "Yes"}}
}

// processRows are the sessions: those of the user alone, if it may not see all.
func (s *session) processRows() (rows [][]any) {
	for _, i := range s.srv.SessionList() {
		user := i.User
		switch {
		case i.State == SessionLogin:
			user = "unauthenticated user"
			fallthrough
		case i.User != s.user.Name:
			if !s.user.looks() {
				continue
			}
		}
		var schema any
		if i.Schema != "" {
			schema = i.Schema
		}
		command := map[SessionState]string{SessionLogin: "Connect", SessionBusy: "Query", SessionIdle: "Sleep"}[i.State]
		// What a session runs is not told: it may hold secrets.
		rows = append(rows, []any{int64(i.ID), user, i.Client, schema, command, int64(time.Since(i.Since) / time.Second), "", nil})
	}
	return rows
}

// statusRows are what SHOW STATUS knows.
func (s *session) statusRows() [][]any {
	told := s.srv.Stats()
	compression := "OFF"
	if s.client.Compressed() {
		compression = "ON"
	}
	cipher, version := s.client.Cipher()
	return [][]any{
		{"Compression", compression},
		{"Connections", strconv.FormatUint(told.Connections, 10)},
		{"Questions", strconv.FormatUint(told.questions(), 10)},
		{"Ssl_cipher", cipher},
		{"Ssl_version", version},
		{"Threads_connected", strconv.Itoa(s.srv.Sessions())},
		{"Uptime", strconv.FormatInt(int64(time.Since(told.Since)/time.Second), 10)},
	}
}

// tellOfItself answers COM_STATISTICS and COM_PROCESS_INFO where there is no server.
func (s *session) tellOfItself(cmd protocol.Command) error {
	if cmd == protocol.ComProcessInfo {
		t, _, err := s.show(&statement.Metadata{Show: "PROCESSLIST"}, nullParam)
		if err != nil {
			return err
		}
		return s.table(t, nil)
	}
	told := s.srv.Stats()
	up := time.Since(told.Since).Seconds()
	text := fmt.Sprintf("Uptime: %.0f  Threads: %d  Questions: %d  Queries per second avg: %.3f", up, s.srv.Sessions(), told.questions(), float64(told.questions())/max(up, 1))
	s.out, _ = protocol.AppendPacket(s.out, []byte(text), s.packetNum)
	return nil
}

// questions is how many statements there were.
func (st *Stats) questions() (n uint64) {
	for _, c := range st.Statements {
		n += c.N
	}
	return n
}

// metadata answers the text if it asks for metadata; p is it if it is prepared, of whose
// parameters param gives the values. ok is false if it asks for something else.
func (s *session) metadata(sql []byte, mode statement.Mode, param func(i int) (string, bool)) (t *protocol.Table, params int, ok bool, err error) {
	m, ok := statement.ReadMetadata(sql, mode)
	if !ok {
		return nil, 0, false, nil
	}
	if m.Show != "" {
		t, ok, err = s.show(m, param)
	} else {
		t, ok = s.selectMetadata(m, param)
	}
	return t, m.Params, ok, err
}

// show answers a SHOW.
func (s *session) show(m *statement.Metadata, param func(i int) (string, bool)) (t *protocol.Table, ok bool, err error) {
	what := m.Show
	if name, is := showNames[what]; is {
		what = name
	}
	pattern := ""
	if m.HasPattern {
		pattern = " (" + m.Pattern + ")"
	}
	var r relation
	switch what {
	case "DATABASES":
		r.columns = []protocol.Column{textColumn("Database"+pattern, 64)}
	case "TABLES", "TABLE STATUS", "OPEN TABLES", "TRIGGERS", "EVENTS":
		schema := m.Schema
		if schema == "" {
			schema = s.state.schema
		}
		if schema == "" && what != "OPEN TABLES" {
			return nil, true, errNoSchema
		}
		if what != "TABLES" {
			r.columns = s.columnsLike("SHOW " + what)
			break
		}
		r.columns = []protocol.Column{textColumn("Tables_in_"+schema+pattern, 64)}
		if m.Full {
			r.columns = append(r.columns, textColumn("Table_type", 64))
		}
	case "GRANTS":
		who := s.user.Name + "@" + protocol.HostOf(s.client.RemoteAddr())
		r.columns = []protocol.Column{textColumn("Grants for "+who, 1024)}
		r.rows = [][]any{{fmt.Sprintf("GRANT USAGE ON *.* TO %s@%s", quotedName(s.user.Name), quotedName(protocol.HostOf(s.client.RemoteAddr())))}}
	default:
		name := "SHOW " + what
		if m.Full && what == "PROCESSLIST" {
			name = "SHOW FULL " + what
		}
		if r.columns = s.columnsLike(name); r.columns == nil || m.Schema != "" {
			return nil, false, nil
		}
		if rows := relations[name]; rows != nil {
			r.rows = rows(s)
		}
	}
	rows, ok := r.held(m, param)
	return &protocol.Table{Columns: r.columns, Rows: rows}, ok, nil
}

var errNoSchema = sqlError(mysql.ER_NO_DB_ERROR, "3D000", "No database selected")

// systemSchemas are those of the server's own.
var systemSchemas = []string{"information_schema", "performance_schema", "mysql", "sys"}

// maxPicked is how many columns an answer about metadata has at most: it is held whole.
const maxPicked = 1000

// selectMetadata answers a SELECT from tables of these schemas. ok is false if it is from
// others, or if what would be told is not known.
func (s *session) selectMetadata(m *statement.Metadata, param func(i int) (string, bool)) (t *protocol.Table, ok bool) {
	var all []relation
	var rows [][]any
	for _, from := range m.Tables {
		schema, r := strings.ToLower(from.Schema), relation{alias: from.Alias}
		if schema == "" {
			schema = strings.ToLower(s.state.schema)
		}
		if dual := from.Schema == "" && strings.EqualFold(from.Name, "dual") && m.Never && len(m.Tables) == 1; !dual && !slices.Contains(systemSchemas, schema) {
			return nil, false
		}
		name := strings.ToUpper(from.Name)
		has := relations[name]
		if schema == "information_schema" || schema == "performance_schema" && has != nil {
			r.columns = s.columnsLike(name)
		}
		if r.columns != nil && has != nil && !m.Never {
			r.rows = has(s)
		}
		all, rows = append(all, r), append(rows, r.rows...)
	}
	t = &protocol.Table{}
	var picked []int // columns of the first relation; -1 is none of them
	for i := range m.Items {
		columns, at, ok := pick(all, &m.Items[i])
		if !ok || len(t.Columns)+len(columns) > maxPicked {
			return nil, false
		}
		t.Columns, picked = append(t.Columns, columns...), append(picked, at...)
	}
	if len(rows) > 0 {
		if m.Others || !m.Total && slices.Contains(picked, -1) {
			return nil, false
		}
		if rows, ok = all[0].held(m, param); !ok { // where there are more relations, that is Rest
			return nil, false
		}
	}
	if m.Total {
		row, ok := totalsOf(m.Items, len(rows))
		t.Rows = [][]any{row}
		return t, ok
	}
	if len(rows) == 0 {
		return t, true
	}
	if !all[0].arrange(rows, m.Order, t.Columns, picked) {
		return nil, false
	}
	from, to, ok := m.Limit.Bounds(len(rows), param)
	if !ok {
		return nil, false
	}
	for _, row := range rows[from:to] {
		told := make([]any, len(picked))
		for i, at := range picked {
			told[i] = row[at]
		}
		t.Rows = append(t.Rows, told)
	}
	return t, true
}

// pick returns the columns that an item of a SELECT stands for, and which columns of the first
// relation they are.
func pick(from []relation, item *statement.MetadataItem) (columns []protocol.Column, at []int, ok bool) {
	for i := range from {
		if item.Table != "" && !strings.EqualFold(item.Table, from[i].alias) {
			continue
		}
		switch {
		case item.All && from[i].columns == nil:
			return nil, nil, false
		case item.All:
			for j := range from[i].columns {
				columns, at = append(columns, from[i].columns[j]), append(at, j)
			}
		case item.Column != "":
			if j := columnNamed(from[i].columns, item.Column); j >= 0 {
				c := from[i].columns[j]
				c.Name = item.Name
				return []protocol.Column{c}, []int{j}, true
			}
		}
	}
	switch {
	case item.All:
		return columns, at, len(columns) > 0
	case item.Count:
		return []protocol.Column{metadataColumn(item.Name, "int")}, []int{-1}, true
	}
	return []protocol.Column{metadataColumn(item.Name, "")}, []int{-1}, true
}

func columnNamed(columns []protocol.Column, name string) int {
	return slices.IndexFunc(columns, func(c protocol.Column) bool { return strings.EqualFold(c.Name, name) })
}

// held returns the rows that the question is about, as long as the columns; ok is false if that is
// not known.
func (r *relation) held(m *statement.Metadata, param func(i int) (string, bool)) (rows [][]any, ok bool) {
	if len(r.rows) == 0 || m.Never {
		return nil, true
	}
	if ok = !m.Rest; m.Where != nil {
		m.Where.Columns(func(name string) { ok = ok && columnNamed(r.columns, name) >= 0 })
	}
	if !ok {
		return nil, false
	}
	for _, row := range r.rows {
		row = append(slices.Clip(row), make([]any, len(r.columns)-len(row))...)
		holds := true
		if m.HasPattern {
			name, ok := row[0].(string)
			if !ok {
				return nil, false // no server takes LIKE there
			}
			holds = statement.Like(m.Pattern, name)
		}
		if m.Where != nil {
			holds = m.Where.Holds(func(name string) (string, bool) {
				v := row[columnNamed(r.columns, name)]
				return fmt.Sprint(v), v != nil
			}, param)
		}
		if holds {
			rows = append(rows, row)
		}
	}
	return rows, true
}
