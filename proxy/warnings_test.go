package proxy_test

import (
	"fmt"
	"strings"
	"testing"
)

// Checklist 30.
func TestAnErrorOfTheProxyIsTheOneThatSHOWWARNINGSTells(t *testing.T) {
	e := newEnv(t, setup{})
	modes := []string{"", "NO_BACKSLASH_ESCAPES", "ANSI_QUOTES"}
	if e.Servers[0].IsMariaDB() {
		modes = append(modes, "ORACLE")
	}
	for _, mode := range modes {
		for _, names := range []string{"utf8mb4", "latin1", "gbk"} {
			for _, name := range []string{`plain`, `a\\b`, `it''s`, `caf` + map[string]string{"utf8mb4": "é", "latin1": "\xe9"}[names], strings.Repeat(`\\x`, 60)} {
				w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
				w.query("SET NAMES " + names + ", sql_mode = '" + mode + "'")
				w.query("SET character_set_results = utf8mb4")
				want := serverError(t, w.query("SELECT NEXTVAL('"+name+"')"))
				if want.Code != 4091 {
					t.Fatalf("%s, %s, %s: got %v, want 4091", mode, names, name, want)
				}
				_, rows := w.result("SHOW WARNINGS")
				text := want.Message
				if len(text) > 128 {
					text = text[:128]
				}
				if fmt.Sprint(rows) != fmt.Sprint([][]string{{"Error", "4091", text}}) {
					t.Errorf("%s, %s, %s: got %q, want %q", mode, names, name, rows, text)
				}
			}
		}
	}
}

// A ping resets ROW_COUNT() alone. The wire sends one behind each text.
func TestAPingKeepsWhatTheProxyWarnsOf(t *testing.T) {
	e := newEnv(t, setup{})
	for _, test := range []struct{ text, want string }{
		{"SELECT NEXTVAL('nowhere')", "[[Error 4091 Unknown SEQUENCE: 'nowhere']]"},
		{"CREATE SEQUENCE IF NOT EXISTS s", "[]"},
		{"CREATE SEQUENCE IF NOT EXISTS s", "[[Warning 1050 Sequence 's' already exists and stays as it is]]"},
		{"SHOW SEQUENCES", "[]"},
	} {
		w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
		w.query("SELECT CAST('x' AS SIGNED)") // a warning of the server's own
		w.query(test.text)
		if _, rows := w.result("SHOW WARNINGS"); fmt.Sprint(rows) != test.want {
			t.Errorf("%s: got the warnings %v, want %s", test.text, rows, test.want)
		}
		if test.text == "CREATE SEQUENCE IF NOT EXISTS s" {
			continue
		}
		w.query(test.text)
		if got := w.rows("SELECT ROW_COUNT()")[0]; got != "0" {
			t.Errorf("%s: got a row count of %s, want 0", test.text, got)
		}
	}
}

// MySQL clears its warnings at every statement that could make LAST_INSERT_ID() a number that the
// proxy gave. A statement that reads both is refused where there are warnings.
func TestWarningsAndAGivenNumberAreReadTogetherOrRefused(t *testing.T) {
	e := newEnv(t, setup{})
	createSequence(t, e, "s")
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "SET sql_mode = ''", "CREATE TEMPORARY TABLE t (n INT)", "INSERT INTO t VALUES (1), (2)")
	const both = "SELECT CONCAT(LAST_INSERT_ID() > 0, ' ', @@warning_count)"
	for _, test := range []struct {
		between, ask, want string
		lost               bool
	}{
		{"SELECT CAST('x' AS SIGNED)", both, "1 1", true},
		{"SELECT * FROM nowhere", both, "1 1", true},
		{"UPDATE t SET n = 'x'", both, "1 2", false}, // may move the number, which is brought before it
		{"SELECT n FROM t LIMIT 1", both, "1 0", false},
		{"SELECT CAST('x' AS SIGNED)", "SELECT @@warning_count", "1", false},
		{"SELECT CAST('x' AS SIGNED)", "SELECT LAST_INSERT_ID() > 0", "1", false},
	} {
		between := func() {
			value(t, c, "SELECT NEXTVAL('s')")
			rows, err := c.QueryContext(t.Context(), test.between)
			if err == nil {
				for rows.Next() {
				}
				err = rows.Close()
			}
			if failed := err != nil; failed != strings.HasSuffix(test.between, "nowhere") {
				t.Fatalf("%s: %v", test.between, err)
			}
		}
		between()
		if !test.lost || e.Servers[0].IsMariaDB() {
			if got := value(t, c, test.ask); got != test.want {
				t.Errorf("%s, %s: got %q, want %q", test.between, test.ask, got, test.want)
			}
			continue
		}
		wantError(t, c, 1235, test.ask, "@@warning_count")
		if got := value(t, c, "SELECT LAST_INSERT_ID() > 0"); got != "1" {
			t.Errorf("%s: LAST_INSERT_ID() after the refusal: got %s, want 1", test.between, got)
		}
		between() // the way out
		exec(t, c, "SET @w = @@warning_count")
		if got := value(t, c, "SELECT CONCAT(LAST_INSERT_ID() > 0, ' ', @w)"); got != test.want {
			t.Errorf("%s: by a variable: got %q, want %q", test.between, got, test.want)
		}
	}
}
