package proxy_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/sequence"
)

// asked is a line of testdata/connecting.txt.
type asked struct {
	who, statement, answer string
}

// readAsked reads the list of statements that clients send when they connect.
func readAsked(t testing.TB) (all []asked) {
	t.Helper()
	text, err := os.ReadFile("testdata/connecting.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		switch {
		case strings.HasPrefix(line, "#"):
		case len(fields) != 3:
			t.Fatalf("testdata/connecting.txt: %q does not have three fields", line)
		default:
			all = append(all, asked{fields[0], fields[1], fields[2]})
		}
	}
	return all
}

// command returns the protocol's command of a line that is no statement.
func (a *asked) command() (cmd protocol.Command, ok bool) {
	text, ok := strings.CutPrefix(a.statement, "command 0x")
	n, _ := strconv.ParseUint(text, 16, 8)
	return protocol.Command(n), ok
}

// fits says whether an answer is that of the line.
func (a *asked) fits(got string) bool {
	return slices.EqualFunc(strings.Split(a.answer, "|"), strings.Split(got, "|"), func(want, got string) bool {
		return want == got || want == "*" && got != ""
	})
}

// answerOf returns the answer to a statement in the form of the list.
func answerOf(ctx context.Context, t *testing.T, c *sql.Conn, statement string, prepared bool) string {
	t.Helper()
	query := c.QueryContext
	if prepared {
		s, err := c.PrepareContext(ctx, statement)
		if err != nil {
			return errorOf(t, err)
		}
		defer s.Close()
		query = func(ctx context.Context, _ string, args ...any) (*sql.Rows, error) {
			return s.QueryContext(ctx, args...)
		}
	}
	rows, err := query(ctx, statement)
	if err != nil {
		return errorOf(t, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range into {
		into[i] = &values[i]
	}
	answer := "ok"
	if rows.Next() {
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, v := range values {
			texts = append(texts, v.String)
		}
		answer = strings.Join(texts, "|")
	}
	if rows.Next() {
		t.Errorf("%s: got more than one row", statement)
	}
	if err := rows.Err(); err != nil {
		return errorOf(t, err)
	}
	return answer
}

func errorOf(t *testing.T, err error) string {
	t.Helper()
	var refused *mysql.MySQLError
	if !errors.As(err, &refused) {
		t.Error(err)
		return err.Error()
	}
	return fmt.Sprintf("error %d", refused.Number)
}

func TestWhatClientsAskWhenTheyConnectIsAnsweredWithoutAServer(t *testing.T) {
	const addr = "127.0.0.1:1" // nothing listens there
	down := func(o *sequence.Options) { o.Servers[0].Addr, o.AllocateTimeout = addr, time.Second }
	for name, s := range map[string]setup{
		"keys only":     {Shards: noShards, Proxy: withWatcher},
		"admin address": {AdminAddress: true, Proxy: withWatcher},
		"admin address, every server down": {
			AdminAddress: true, Proxy: withWatcher, Sequence: down, Backend: func(o *backend.Options) { o.Shards[0].Nodes = []string{addr} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, s)
			at := e.Addr()
			if s.AdminAddress {
				at = e.AdminAddr()
			}
			for _, a := range readAsked(t) {
				if cmd, ok := a.command(); ok {
					got := "ok"
					if answer := e.Wire(t, at, asWire(watcher)).do(cmd, ""); answer[4] == 0xff {
						got = fmt.Sprintf("error %d", serverError(t, answer).Code)
					}
					if !a.fits(got) {
						t.Errorf("%s: %s: got %s, want %s", a.who, a.statement, got, a.answer)
					}
					continue
				}
				for _, prepared := range []bool{false, true} {
					// Each statement has a connection of its own, because a SET stays in force.
					db := e.open(t, at, "gallery", as(watcher))
					c := one(t, db)
					if got := answerOf(t.Context(), t, c, a.statement, prepared); !a.fits(got) {
						t.Errorf("%s: %s (prepared %v): got %s, want %s", a.who, a.statement, prepared, got, a.answer)
					}
					c.Close()
					db.Close()
				}
			}
		})
	}
}

// columnFamilies returns the names of a result's columns with the families of their types.
func columnFamilies(t *testing.T, c *sql.Conn, query string, prepared bool) (names, types []string, err error) {
	t.Helper()
	var rows *sql.Rows
	if prepared {
		st, err := c.PrepareContext(t.Context(), query)
		if err != nil {
			return nil, nil, err
		}
		defer st.Close()
		rows, err = st.QueryContext(t.Context())
		if err != nil {
			return nil, nil, err
		}
	} else if rows, err = c.QueryContext(t.Context(), query); err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	columns, err := rows.ColumnTypes()
	if err != nil {
		t.Fatal(err)
	}
	for _, column := range columns {
		names = append(names, column.Name())
		family := "text"
		switch kind := strings.TrimPrefix(column.DatabaseTypeName(), "UNSIGNED "); kind {
		case "BIGINT", "INT", "SMALLINT", "TINYINT":
			family = "integer"
		case "DATETIME", "TIMESTAMP":
			family = "time"
		case "DECIMAL", "DOUBLE", "FLOAT":
			family = "fraction"
		}
		types = append(types, family)
	}
	return names, types, nil
}

func TestWhatIsAnsweredWithoutAServerHasTheColumnsOfTheServer(t *testing.T) {
	e := newEnv(t, setup{AdminAddress: true})
	schema := e.Schemas[0]
	direct, admin := e.DirectConn(t, 0, schema, nil), e.AdminConn(t, func(c *mysql.Config) { c.DBName = schema })
	compared := 0
	for _, a := range readAsked(t) {
		if _, ok := a.command(); ok || strings.HasPrefix(a.answer, "error ") || strings.EqualFold(a.statement[:3], "SET") {
			continue
		}
		for _, prepared := range []bool{false, true} {
			names, types, err := columnFamilies(t, direct, a.statement, prepared)
			if err != nil {
				continue // this server does not have the variable
			}
			compared++
			gotNames, gotTypes, err := columnFamilies(t, admin, a.statement, prepared)
			if err != nil || !slices.Equal(gotNames, names) || !slices.Equal(gotTypes, types) {
				t.Errorf("%s (prepared %v): %v\n got %v\n     %v\nwant %v\n     %v", a.statement, prepared, err, gotNames, gotTypes, names, types)
			}
		}
	}
	if compared < 40 {
		t.Errorf("compared %d statements, want 40 or more", compared)
	}
}

// TestWhatIsNotAskedWhenClientsConnectIsAnErrorThatNamesTheWayOut: neither the admin address nor a
// keys-only proxy has a server for such statements.
func TestWhatIsNotAskedWhenClientsConnectIsAnErrorThatNamesTheWayOut(t *testing.T) {
	e, keys := newEnv(t, setup{AdminAddress: true, Proxy: withWatcher}), newEnv(t, setup{Shards: noShards})
	for _, place := range []struct {
		conn  *sql.Conn
		words []string
	}{
		{e.AdminConn(t, nil), []string{"admin address", "to look around with a tool", e.Addr()}},
		{keys.Conn(t, "", nil), []string{"only keys are served here", "connect to the database server", "[[shard]]"}},
	} {
		for _, query := range []string{
			"SHOW TABLES", "SHOW DATABASES LIKE 'x'", "SHOW STATUS", "SHOW VARIABLES WHERE Variable_name = 'autocommit'", "SHOW PROCESSLIST", "SHOW CHARACTER SET",
			"SHOW TABLE STATUS", "SHOW PLUGINS", "SHOW TRIGGERS", "SHOW REPLICA STATUS", "SHOW COLUMNS FROM photos", "SHOW CREATE TABLE photos", "SHOW GRANTS FOR root@localhost", "DESCRIBE photos",
			"SELECT * FROM information_schema.PROCESSLIST ORDER BY ID LIMIT 1", "SELECT COUNT(*) FROM information_schema.TABLES", "SELECT * FROM mysql.user", "SELECT '' x FROM DUAL WHERE 1=0",
			"SELECT 1 UNION SELECT 2", "SELECT NOW()", "SELECT UNIX_TIMESTAMP()", "SELECT @@port", "SELECT 1, @@global.nothing", "SELECT @x", "SELECT ?",
		} {
			if query != "SELECT ?" {
				wantError(t, place.conn, 1235, query, place.words...)
			}
			st, err := place.conn.PrepareContext(t.Context(), query)
			if err == nil {
				st.Close()
			}
			checkError(t, "prepared "+query, err, 1235, place.words...)
		}
	}
}

func TestStatisticsAtTheAdminAddress(t *testing.T) {
	e := newEnv(t, setup{AdminAddress: true, Proxy: withWatcher})
	e.Wire(t, e.Addr(), asWire(stranger))
	w := e.Wire(t, e.AdminAddr(), asWire(watcher))
	if got := string(w.do(protocol.ComStatistics, "")); !strings.Contains(got, "Uptime: ") || !strings.Contains(got, "Threads: 2") {
		t.Errorf("statistics: got %q", got)
	}
	w.ping("these")
}
