package proxy_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"seqproxy/backend"
	"seqproxy/proxy"
	"seqproxy/sequence"
)

// counted matches the counter of AUTO_INCREMENT among the options of a table.
var counted = regexp.MustCompile(` AUTO_INCREMENT=\d+`)

// SHOW SEQUENCES names a column that is filled from a sequence, but that the servers of several
// shards number, too, with the statement that ends this.
func TestShowSequencesNamesTheColumnsThatSeveralShardsNumber(t *testing.T) {
	e := newEnv(t, setup{Shards: 2, Proxy: func(o *proxy.Options) {
		o.Bindings = []proxy.Binding{{Table: "albums", Column: "id", Sequence: "Albums"}, {Table: "one_shard", Column: "id", Sequence: "albums"}}
	}})
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "CREATE SEQUENCE photos", "CREATE SEQUENCE albums START WITH 100", "CREATE SEQUENCE unbound")
	mariaDB := !strings.HasPrefix(value(t, c, "SELECT VERSION()"), "9.")
	for i, server := range e.Servers {
		// Neither mode applies to the proxy's sessions.
		server.Exec(t, "USE "+e.Schemas[i], "SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'",
			"CREATE TABLE albums (a INT, id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT INVISIBLE "+`COMMENT 'it''s one of AUTO_INCREMENT, "x" \ ö' PRIMARY KEY, b INT) COMMENT 'AUTO_INCREMENT'`,
			"CREATE TABLE child (album BIGINT UNSIGNED NOT NULL, FOREIGN KEY (album) REFERENCES albums (id))",
			"INSERT INTO albums (a) VALUES (1), (2)", "INSERT INTO child VALUES (1)",
			"CREATE TABLE photos (`i``d` INT UNSIGNED ZEROFILL NOT NULL AUTO_INCREMENT, a INT, PRIMARY KEY (`i``d`), KEY (a))",
			"CREATE TABLE plain (id BIGINT PRIMARY KEY)")
	}
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE one_shard (id BIGINT AUTO_INCREMENT PRIMARY KEY)")
	e.Servers[1].Exec(t, "USE "+e.Schemas[1], "CREATE TABLE one_shard (id BIGINT PRIMARY KEY)")
	if _, err := e.Sequences.Alter(t.Context(), []byte("photos"), sequence.Alteration{OwnedBy: &sequence.Column{Table: "photos", Column: "i`d"}}); err != nil {
		t.Fatal(err)
	}

	warnings := func() map[string]string {
		t.Helper()
		columns, rows := table(t, c, "SHOW SEQUENCES")
		all := make(map[string]string)
		for _, row := range rows {
			if columns[len(columns)-1] != "warning" {
				t.Fatalf("the columns are %q", columns)
			}
			all[row[0]] = row[len(row)-1]
		}
		return all
	}
	eventually(t, "the owner is known", func() bool { return warnings()["photos"] != "NULL" })
	warned := warnings()
	if warned["unbound"] != "NULL" || strings.Contains(warned["albums"], "one_shard") {
		t.Errorf("got the warnings %q, want none", warned)
	}
	mayManage := func(is bool) {
		e.Reload(t, func(_ *backend.Options, o *proxy.Options) {
			o.Users = slices.Clone(o.Users)
			o.Users[0].Admin = is
		})
	}
	mayManage(false)
	if _, rows := table(t, e.Conn(t, e.Schemas[0], nil), "SHOW SEQUENCES"); len(rows) != 3 || slices.ContainsFunc(rows, func(row []string) bool { return row[len(row)-1] != "NULL" }) {
		t.Errorf("who may not manage sequences got %q, want three without a warning", rows)
	}
	mayManage(true)
	numbered, err := e.Proxy.Numbered(t.Context())
	if err != nil || len(numbered) != 4 {
		t.Fatalf("got %d tables, %v, want 4: %+v", len(numbered), err, numbered)
	}
	for i := range numbered {
		n := &numbered[i]
		shard := 0
		if n.Shard == "s1" {
			shard = 1
		}
		text := warned[strings.ToLower(n.Binding.Sequence)]
		if !strings.Contains(text, n.Name()+" has AUTO_INCREMENT") || !strings.Contains(text, "on shard "+n.Shard+": "+n.Remedy) || !strings.Contains(n.Remedy, "ALTER TABLE `"+e.Schemas[shard]+"`.") {
			t.Errorf("%+v: got the warning %q, want one with the statement", n, text)
		}
		server := e.DirectConn(t, shard, e.Schemas[shard], nil)
		show := "SHOW CREATE TABLE " + n.Binding.Table
		_, before := table(t, server, show)
		for text := range strings.SplitSeq(n.Remedy, "; ") {
			exec(t, server, text)
		}
		want, code := strings.Replace(counted.ReplaceAllString(before[0][1], ""), " AUTO_INCREMENT", "", 1), uint16(1364)
		_, after := table(t, server, show)
		got := after[0][1]
		if mariaDB && n.Binding.Table == "albums" {
			// MariaDB requires a default for an invisible column.
			got, code = strings.NewReplacer(" DEFAULT 0", "", " CHECK (`id` <> 0)", "").Replace(got), 4025
		}
		if got != want || mariaDB && code != 1364 && got == after[0][1] {
			t.Errorf("%s:\nbefore %s\nafter %s\nwant %s", n.Remedy, before[0][1], after[0][1], want)
		}
		wantError(t, server, code, "INSERT INTO "+n.Binding.Table+" (a) VALUES (3)")
	}
	for name, warning := range warnings() {
		if warning != "NULL" {
			t.Errorf("%s: got the warning %q afterwards, want none", name, warning)
		}
	}
	exec(t, c, "INSERT INTO albums (a) VALUES (4)")
	if got := value(t, c, "SELECT LAST_INSERT_ID() = id FROM albums WHERE a = 4"); got != "1" {
		t.Errorf("a key that is filled in: got %s", got)
	}
}
