package inspect

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"seqproxy/internal/mysqltest"
)

func TestMain(m *testing.M) { mysqltest.Main(m, mysqltest.CheckLeaks()) }

// asker asks the shared server as an account.
func asker(t *testing.T, s *mysqltest.Server, user, role string) Ask {
	t.Helper()
	db := s.DBAs(t, user, "hush-hush")
	db.SetMaxOpenConns(1)
	if role != "" {
		if _, err := db.Exec("SET ROLE " + role); err != nil {
			t.Fatal(err)
		}
	}
	return func(ctx context.Context, text string) (all [][]string, err error) {
		rows, err := db.QueryContext(ctx, text)
		if err != nil {
			return nil, err
		}
		defer rows.Close() //nolint:errcheck // it was read to the end
		names, err := rows.Columns()
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			values, into := make([]string, len(names)), make([]any, len(names))
			for i := range values {
				into[i] = &values[i]
			}
			if err := rows.Scan(into...); err != nil {
				return nil, err
			}
			all = append(all, values)
		}
		return all, rows.Err()
	}
}

// TestRightsAreWhatTheServerGrants compares with what the server lets the account do.
func TestRightsAreWhatTheServerGrants(t *testing.T) {
	s := mysqltest.Shared(t)
	schema := s.Schema(t)
	user := schema + "u"
	odd := schema + "`o.d,d ON"
	quoted := "`" + strings.ReplaceAll(odd, "`", "``") + "`"
	s.Exec(t, "CREATE DATABASE "+quoted, "CREATE USER `"+user+"`@'%' IDENTIFIED BY 'hush-hush'", "CREATE ROLE r"+schema,
		"CREATE TABLE "+schema+".a (id INT, b INT)", "CREATE TABLE "+schema+".b (id INT)", "CREATE TABLE "+quoted+".`x.y` (id INT)")
	t.Cleanup(func() {
		s.Exec(t, "DROP DATABASE "+quoted, "DROP USER `"+user+"`@'%'", "DROP ROLE r"+schema)
	})
	to := " TO `" + user + "`@'%'"
	s.Exec(t, "GRANT SELECT ON "+schema+".*"+to, "GRANT INSERT, UPDATE (b) ON "+schema+".a"+to, "GRANT CREATE TEMPORARY TABLES, LOCK TABLES ON "+quoted+".*"+to,
		"GRANT DELETE ON "+quoted+".`x.y`"+to, "GRANT DELETE ON "+schema+".* TO r"+schema, "GRANT r"+schema+to, "GRANT PROCESS ON *.*"+to)
	for _, role := range []string{"", "r" + schema} {
		server, err := Read(context.Background(), asker(t, s, user, role))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := server.Account.String(), "'"+user+"'@'%'"; got != want {
			t.Errorf("the account: got %s, want %s", got, want)
		}
		for _, c := range []struct {
			schema, table, privilege string
			want                     bool
		}{
			{schema, "a", "SELECT", true},
			{schema, "", "SELECT", true},
			{schema, "b", "INSERT", false},
			{schema, "a", "INSERT", true},
			{schema, "", "INSERT", false},
			{schema, "a", "UPDATE", false}, // of one column
			{schema, "a", "DELETE", role != ""},
			{odd, "x.y", "DELETE", true},
			{odd, "x", "DELETE", false},
			{odd, "", "LOCK TABLES", true},
			{odd, "", "CREATE TEMPORARY TABLES", true},
			{odd, "", "CREATE", false},
			{"", "", "PROCESS", true},
			{"", "", "SUPER", false},
			{"mysql", "user", "SELECT", false},
		} {
			if got := server.Rights.On(c.schema, c.table, c.privilege); got != c.want {
				t.Errorf("role %q: %s on %q.%q: got %v, want %v", role, c.privilege, c.schema, c.table, got, c.want)
			}
		}
	}
}

func TestGrantsOnPatterns(t *testing.T) {
	r := &Rights{global: make(map[string]bool)}
	for _, line := range []string{
		"GRANT USAGE ON *.* TO `u`@`%` IDENTIFIED BY PASSWORD '*81F5 ON *.* WITH GRANT OPTION'",
		"GRANT INSERT ON `seq%`.* TO `u`@`%`",
		"GRANT SELECT ON `seqproxy`.* TO `u`@`%`",
		`GRANT UPDATE ON "my\_ids".* TO "u"@"%"`,
		"GRANT EXECUTE ON FUNCTION `seqproxy`.`f` TO `u`@`%`",
		"GRANT PROXY ON ``@`%` TO `u`@`%` WITH GRANT OPTION",
		"GRANT ALL PRIVILEGES ON `all`.* TO `u`@`%` WITH GRANT OPTION",
		"GRANT `a role`@`%` TO `u`@`%`",
		"REVOKE DELETE ON `kept`.* FROM `u`@`%`",
		"GRANT DELETE ON *.* TO `u`@`%`",
	} {
		r.add(line)
	}
	for _, c := range []struct {
		schema, privilege string
		want              bool
	}{
		{"seq1", "INSERT", true},
		{"other", "INSERT", false},
		{"seqproxy", "SELECT", true},
		{"seqproxy", "INSERT", false}, // the server takes the entry that fits best
		{"my_ids", "UPDATE", true},
		{"myxids", "UPDATE", false},
		{"all", "LOCK TABLES", true},
		{"seqproxy", "EXECUTE", false},
		{"kept", "DELETE", false},
		{"other", "DELETE", true},
	} {
		if got := r.On(c.schema, "t", c.privilege); got != c.want {
			t.Errorf("%s on %s: got %v, want %v", c.privilege, c.schema, got, c.want)
		}
	}
	if r.grants {
		t.Error("GRANT OPTION on *.* is read out of other lines")
	}
}

func TestVersionsAreToldByTheirEnd(t *testing.T) {
	day := func(s string) time.Time {
		d, err := time.Parse(time.DateOnly, s)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for _, c := range []struct {
		version, comment, now string
		level                 Level
	}{
		{"10.11.6-MariaDB-log", "", "2026-01-01", OK},
		{"5.5.5-10.11.6-MariaDB-log", "", "2028-03-01", Warning},
		{"8.0.36", "MySQL Community Server - GPL", "2026-04-30", OK},
		{"8.0.36", "MySQL Community Server - GPL", "2026-05-02", Warning},
		{"5.6.51", "", "2020-01-01", Wrong},
		{"10.1.2-MariaDB", "", "2015-01-01", Wrong},
		{"99.1.0", "", "2026-01-01", OK},
		{"next", "", "2026-01-01", Warning},
	} {
		s := &Server{Version: strings.TrimPrefix(c.version, "5.5.5-"), MariaDB: strings.Contains(c.version, "MariaDB")}
		var f Findings
		s.CheckVersion(&f, day(c.now))
		if len(f.All) != 1 || f.All[0].Level != c.level {
			t.Errorf("%s on %s: got %+v, want %s", c.version, c.now, f.All, c.level)
		}
	}
	var releases []string
	for release, end := range ends {
		if _, err := time.Parse(time.DateOnly, end); err != nil || slices.Contains(releases, release) {
			t.Errorf("%s: the end is %q", release, end)
		}
		releases = append(releases, release)
	}
}
