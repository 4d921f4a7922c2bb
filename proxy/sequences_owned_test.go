package proxy_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"seqproxy/proxy"
)

// said returns the rows of CHECK SEQUENCE and its like, as "kind: text".
func said(t *testing.T, rows [][]string, op string) string {
	t.Helper()
	var all []string
	for _, row := range rows {
		if row[1] != op {
			t.Errorf("Op: got %s, want %s", row[1], op)
		}
		all = append(all, row[2]+": "+row[3])
	}
	return strings.Join(all, "\n")
}

// A queue's rows are deleted, and AUTO_INCREMENT does not give their keys again. Neither may a
// sequence. A row that was no key of it, at the end of the column, tells nothing.
func TestASequenceBeginsAboveTheKeysOfDeletedRows(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	jobs := "(id BIGINT AUTO_INCREMENT PRIMARY KEY, n INT)"
	for i, upTo := range []string{"70", "5000"} {
		e.Servers[i].Exec(t, "USE "+e.Schemas[i], "CREATE TABLE jobs "+jobs, "INSERT INTO jobs VALUES ("+upTo+", 1)", "DELETE FROM jobs",
			"CREATE TABLE stepped "+jobs, "SET auto_increment_increment = 10", "INSERT INTO stepped (n) VALUES (1), (2)",
			"CREATE TABLE odd "+jobs, "INSERT INTO odd VALUES (3, 1), (9223372036854775807, 1)", "DELETE FROM odd WHERE id > 3")
	}
	for _, s := range e.Servers {
		s.Exec(t, "SET GLOBAL auto_increment_increment = 10")
		t.Cleanup(func() { s.Exec(t, "SET GLOBAL auto_increment_increment = 1") })
	}
	c := e.Conn(t, e.Schemas[0], nil)
	for _, test := range []struct{ table, first, note string }{
		{"jobs", "5001", "sequence begins at 5001: shard s1 gave keys up to 5000 in " + e.Schemas[1] + ".jobs, by AUTO_INCREMENT"},
		{"stepped", "12", "sequence begins at 12: shard s0 has keys up to 11 in " + e.Schemas[0] + ".stepped"},
		{"odd", "4", "sequence begins at 4: shard s0 has keys up to 3 in " + e.Schemas[0] + ".odd"},
	} {
		exec(t, c, "CREATE SEQUENCE "+test.table+" OWNED BY "+test.table+".id")
		if _, rows := table(t, c, "SHOW WARNINGS"); len(rows) != 1 || rows[0][2] != test.note {
			t.Errorf("%s: noted %q, want %q", test.table, rows, test.note)
		}
		if got := value(t, c, "SELECT NEXTVAL('"+test.table+"')"); got != test.first {
			t.Errorf("%s: got %s, want %s", test.table, got, test.first)
		}
	}
	// An ALTER of a sequence that is there does the same.
	exec(t, c, "ALTER SEQUENCE jobs OWNED BY NONE", "CREATE SEQUENCE old", "SELECT NEXTVAL('old')", "ALTER SEQUENCE old OWNED BY jobs.id")
	if got := value(t, c, "SELECT NEXTVAL('old')"); got != "5001" {
		t.Errorf("after ALTER ... OWNED BY: got %s, want 5001", got)
	}
	// So does a REPAIR, as another proxy says for its own shards.
	e.Servers[1].Exec(t, "USE "+e.Schemas[1], "INSERT INTO jobs VALUES (9000, 1)", "DELETE FROM jobs")
	for _, test := range [][2]string{{"check", "warning"}, {"repair", "note"}} {
		_, rows := table(t, c, test[0]+" SEQUENCE old")
		want := fmt.Sprintf("%s: shard s1: AUTO_INCREMENT of %s.jobs gave keys up to 9000, above the counter", test[1], e.Schemas[1])
		if got := said(t, rows, test[0]); !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := value(t, c, "SELECT NEXTVAL('old')"); got != "9001" {
		t.Errorf("after REPAIR: got %s, want 9001", got)
	}
}

func TestASequenceBeginsAboveTheKeysOfItsColumnOnEveryShard(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	for i, ids := range []string{"(3), (70)", "(5), (900)"} {
		e.Servers[i].Exec(t, "USE "+e.Schemas[i], "CREATE TABLE photos (id INT UNSIGNED PRIMARY KEY)", "INSERT INTO photos VALUES "+ids,
			"CREATE TABLE empty_one (id BIGINT PRIMARY KEY)", "CREATE TABLE negative (id SMALLINT PRIMARY KEY)", "INSERT INTO negative VALUES (-7)",
			"CREATE TABLE words (id VARCHAR(20) PRIMARY KEY)")
	}
	c := e.Conn(t, e.Schemas[0], nil)
	warning := func() string {
		_, rows := table(t, c, "SHOW WARNINGS")
		if len(rows) == 0 {
			return ""
		}
		return rows[0][2]
	}
	for _, test := range []struct{ name, statement, first, note string }{
		{"both", "CREATE SEQUENCE both OWNED BY photos.id", "901", "begins at 901: shard s1 has keys up to 900 in " + e.Schemas[1] + ".photos"},
		{"one", "CREATE SEQUENCE one OWNED BY " + e.Schemas[0] + ".photos.id", "71", "begins at 71: shard s0 has keys up to 70"},
		{"above", "CREATE SEQUENCE above START 5000 OWNED BY photos.id", "5000", ""},
		{"none", "CREATE SEQUENCE none OWNED BY empty_one.id", "1", ""},
		{"below", "CREATE SEQUENCE below OWNED BY negative.id", "1", ""},
		{"step", "CREATE SEQUENCE step INCREMENT 7 OWNED BY photos.id", "904", "begins at 904"},
	} {
		exec(t, c, test.statement)
		if got := warning(); !strings.Contains(got, test.note) || test.note == "" && got != "" {
			t.Errorf("%s: noted %q, want %q", test.statement, got, test.note)
		}
		if got := value(t, c, "SELECT NEXTVAL('"+test.name+"')"); got != test.first {
			t.Errorf("%s: got %s, want %s", test.statement, got, test.first)
		}
		exec(t, c, "ALTER SEQUENCE "+test.name+" OWNED BY NONE")
	}
	// The numbers of the old sequence are above the keys, so the note names no shard.
	exec(t, c, "DROP SEQUENCE both", "CREATE SEQUENCE both OWNED BY photos.id")
	if got := warning(); !strings.Contains(got, "a sequence of that name may have given numbers up to") || strings.Contains(got, "shard") {
		t.Errorf("made again: noted %q", got)
	}
	exec(t, c, "ALTER SEQUENCE both OWNED BY NONE")
	// Keys of an open transaction count.
	direct := e.DirectConn(t, 1, e.Schemas[1], nil)
	exec(t, direct, "BEGIN", "INSERT INTO photos VALUES (2000)")
	exec(t, c, "CREATE SEQUENCE later", "SELECT NEXTVAL('later')", "ALTER SEQUENCE later OWNED BY photos.id")
	if got := warning(); !strings.Contains(got, "continues at 2001: shard s1 has keys up to 2000") {
		t.Errorf("ALTER: noted %q", got)
	}
	exec(t, direct, "ROLLBACK")
	if got := value(t, c, "SELECT NEXTVAL('later')"); got != "2001" {
		t.Errorf("after ALTER ... OWNED BY: got %s, want 2001", got)
	}
	if got := createOf(t, e, "later"); !strings.Contains(got, "owned by `photos`.`id`") {
		t.Errorf("got %s, want the owner", got)
	}
	// A table gets its keys from one sequence.
	for _, text := range []string{"ALTER SEQUENCE both OWNED BY photos.id", "CREATE SEQUENCE second OWNED BY photos.id"} {
		wantError(t, c, 1210, text, "photos.id owns sequence \"later\"", "ALTER SEQUENCE `later` OWNED BY NONE", "START WITH n")
	}
	exec(t, c, "ALTER SEQUENCE later OWNED BY photos.id", "ALTER SEQUENCE later OWNED BY NONE")
	if got := createOf(t, e, "later"); strings.Contains(got, "owned") {
		t.Errorf("got %s, want no owner", got)
	}
	for _, test := range []struct {
		code       uint16
		text, word string
	}{
		{1054, "CREATE SEQUENCE s OWNED BY photos.nothing", "photos.nothing"},
		{1054, "CREATE SEQUENCE s OWNED BY nowhere.photos.id", "nowhere.photos.id"},
		{1054, "ALTER SEQUENCE later OWNED BY nothing.id", "nothing.id"},
		{1105, "CREATE SEQUENCE s OWNED BY words.id", "no integer"},
		{4091, "ALTER SEQUENCE s OWNED BY photos.id", "'s'"}, // none of the above was made
	} {
		wantError(t, c, test.code, test.text, test.word)
	}
}

func createOf(t *testing.T, e *env, name string) string {
	t.Helper()
	_, rows := table(t, e.Conn(t, "", nil), "SHOW CREATE SEQUENCE "+name)
	return rows[0][1]
}

func TestCHECKAndREPAIRCompareASequenceWithItsColumn(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	for i := range e.Servers {
		e.Servers[i].Exec(t, "USE "+e.Schemas[i], "CREATE TABLE photos (id BIGINT UNSIGNED PRIMARY KEY)", fmt.Sprintf("INSERT INTO photos VALUES (%d)", 10*(i+1)))
	}
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "CREATE SEQUENCE photos NOCACHE OWNED BY photos.id", "CREATE SEQUENCE alone")
	at := func(i int) string { return fmt.Sprintf("shard s%d: %s.photos.id goes up to ", i, e.Schemas[i]) }
	check := func(statement, op, want string) {
		t.Helper()
		columns, rows := table(t, c, statement)
		if got := strings.Join(columns, " "); got != "Table Op Msg_type Msg_text" {
			t.Errorf("columns: got %s", got)
		}
		if got := said(t, rows, op); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", statement, got, want)
		}
	}
	check("CHECK SEQUENCE photos", "check", "note: "+at(0)+"10\nnote: "+at(1)+"20\nstatus: OK")
	check("REPAIR SEQUENCE photos", "repair", "note: "+at(0)+"10\nnote: "+at(1)+"20\nstatus: OK")

	e.Servers[1].Exec(t, "INSERT INTO "+e.Schemas[1]+".photos VALUES (500)")
	check("CHECK SEQUENCE PHOTOS", "check", "note: "+at(0)+"10\nError: "+at(1)+"500, above the counter, which stands at 20: those keys would be given again. "+
		"REPAIR SEQUENCE `photos` raises it\nerror: Corrupt")
	check("REPAIR SEQUENCE photos", "repair", "note: "+at(0)+"10\nnote: "+at(1)+"500, above the counter, which stood at 20\ninfo: raised from 20 to 500\nstatus: OK")
	check("CHECK SEQUENCE photos", "check", "note: "+at(0)+"10\nnote: "+at(1)+"500\nstatus: OK")
	if got := value(t, c, "SELECT NEXTVAL('photos')"); got != "501" {
		t.Errorf("after the repair: got %s, want 501", got)
	}
	// A repair drops what a proxy has cached below the keys.
	exec(t, c, "ALTER SEQUENCE photos CACHE 1000", "SELECT NEXTVAL('photos')")
	e.Servers[0].Exec(t, "INSERT INTO "+e.Schemas[0]+".photos VALUES (800)")
	table(t, c, "REPAIR SEQUENCE photos")
	if got := value(t, c, "SELECT NEXTVAL('photos')"); len(got) < 3 || got <= "800" {
		t.Errorf("after a repair with numbers in memory: got %s, want more than 800", got)
	}

	check("CHECK SEQUENCE alone, nobody", "check", "note: no column owns the sequence: ALTER SEQUENCE `alone` OWNED BY table.column names one\nstatus: OK\n"+
		"Error: Unknown SEQUENCE: 'nobody'\nstatus: Operation failed")
	e.Servers[0].Exec(t, "DROP TABLE "+e.Schemas[0]+".photos")
	e.Servers[1].Exec(t, "DROP TABLE "+e.Schemas[1]+".photos")
	check("CHECK SEQUENCE photos", "check", "Error: no shard has a column photos.id, or the user may not see it\nerror: Corrupt")

	// As a prepared statement, and by the command-line client.
	for _, text := range []string{"CHECK SEQUENCE alone", "REPAIR SEQUENCE alone"} {
		stmt, err := c.PrepareContext(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		var name, op, kind, message string
		if err := stmt.QueryRow().Scan(&name, &op, &kind, &message); err != nil || name != "alone" || kind != "note" {
			t.Errorf("%s: got %s %s %s %s, %v", text, name, op, kind, message, err)
		}
		stmt.Close()
	}
	if out := e.CLI(t, e.Addr(), "", "CHECK SEQUENCE alone;\nSHOW CREATE SEQUENCE alone\\G\nSHOW SEQUENCES LIKE 'al%';\nFLUSH SEQUENCES;\n"); !strings.Contains(out, "no column owns") ||
		!strings.Contains(out, "Create Table: CREATE SEQUENCE `alone`") || strings.Contains(out, "ERROR") {
		t.Errorf("the command-line client prints\n%s", out)
	}
}

// The proxy reads the keys with the user's rights, and shows nothing else.
func TestAColumnIsReadWithTheRightsOfTheUser(t *testing.T) {
	var account string
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) {
		account = "few_" + o.Users[0].Name[2:]
		o.Users = append(o.Users, proxy.User{Name: account, Password: "p", Admin: true})
	}})
	s := e.Servers[0]
	s.Exec(t, "USE "+e.Schemas[0], "CREATE TABLE secret (id BIGINT PRIMARY KEY)", "INSERT INTO secret VALUES (4711)", "CREATE TABLE half (id BIGINT PRIMARY KEY, n INT)",
		fmt.Sprintf("CREATE USER %s@'%%' IDENTIFIED BY 'p'", account), fmt.Sprintf("GRANT SELECT (n), INSERT (id) ON %s.half TO %s@'%%'", e.Schemas[0], account))
	t.Cleanup(func() { s.Exec(t, fmt.Sprintf("DROP USER %s@'%%'", account)) })
	password := "p"
	w := e.Wire(t, e.Addr(), wireLogin{User: &account, Password: &password})
	for text, code := range map[string]uint16{"CREATE SEQUENCE s OWNED BY secret.id": 1054, "CREATE SEQUENCE s OWNED BY half.id": 1105} {
		if got := serverError(t, w.query(text)); got.Code != code || strings.Contains(got.Message, "4711") {
			t.Errorf("%s: got %v, want %d", text, got, code)
		}
	}
}

// An admin sees the column on one shard alone. The other may have greater keys.
func TestAShardWhoseColumnTheUserDoesNotSeeIsAnError(t *testing.T) {
	var account string
	e := newEnv(t, setup{Shards: 2, Proxy: func(o *proxy.Options) {
		account = "few_" + o.Users[0].Name[2:]
		o.Users = append(o.Users, proxy.User{Name: account, Password: "p", Admin: true})
	}})
	for i, s := range e.Servers[:2] {
		s.Exec(t, "USE "+e.Schemas[i], "CREATE TABLE photos (id BIGINT PRIMARY KEY)", fmt.Sprintf("INSERT INTO photos VALUES (%d)", 70+830*i),
			fmt.Sprintf("CREATE USER %s@'%%' IDENTIFIED BY 'p'", account))
		t.Cleanup(func() { s.Exec(t, fmt.Sprintf("DROP USER %s@'%%'", account)) })
	}
	e.Servers[0].Exec(t, fmt.Sprintf("GRANT SELECT ON %s.photos TO %s@'%%'", e.Schemas[0], account))
	exec(t, e.Conn(t, e.Schemas[0], nil), "CREATE SEQUENCE photos", "ALTER SEQUENCE photos OWNED BY photos.id", "CREATE SEQUENCE others")
	password := "p"
	w := e.Wire(t, e.Addr(), wireLogin{User: &account, Password: &password})
	for _, text := range []string{"CREATE SEQUENCE s OWNED BY photos.id", "ALTER SEQUENCE others OWNED BY photos.id"} {
		got := serverError(t, w.query(text))
		if got.Code != 1105 || !strings.Contains(got.Message, "shard s1, table "+e.Schemas[1]+".photos") || !strings.Contains(got.Message, "GRANT SELECT") {
			t.Errorf("%s: got %v, want that shard s1 is not seen", text, got)
		}
	}
	for _, text := range []string{"CHECK SEQUENCE photos", "REPAIR SEQUENCE photos"} {
		if _, rows := w.result(text); !strings.Contains(fmt.Sprint(rows), "shard s1, table "+e.Schemas[1]+".photos: the user may not see this table") || strings.Contains(fmt.Sprint(rows), "OK") {
			t.Errorf("%s: got %v, want an error about shard s1", text, rows)
		}
	}
	exec(t, e.Conn(t, e.Schemas[0], nil), "ALTER SEQUENCE photos OWNED BY NONE")
	w.query("CREATE SEQUENCE one OWNED BY " + e.Schemas[0] + ".photos.id")
	if _, rows := w.result("SHOW WARNINGS"); !strings.Contains(fmt.Sprint(rows), "begins at 71") {
		t.Errorf("with the schema of the shard that it sees: got %v", rows)
	}
}

// MariaDB calls such tables no BASE TABLE.
func TestTheKeysOfATableWithSystemVersioningCount(t *testing.T) {
	e := newEnv(t, setup{})
	if !e.Servers[0].IsMariaDB() {
		t.Skip("MySQL has no such tables")
	}
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "CREATE TABLE photos (id BIGINT PRIMARY KEY) WITH SYSTEM VERSIONING", "INSERT INTO photos VALUES (70)", "CREATE SEQUENCE photos OWNED BY photos.id")
	if got := value(t, c, "SELECT NEXTVAL('photos')"); got != "71" {
		t.Errorf("got %s, want 71", got)
	}
}

// A key beyond the end of a sequence, as an import leaves it, hides none of those below it.
func TestAKeyBeyondTheEndOfASequenceHidesNoneBelow(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	for i, ids := range []string{"(500), (5000)", "(700)"} {
		e.Servers[i].Exec(t, "USE "+e.Schemas[i], "CREATE TABLE photos (id BIGINT UNSIGNED PRIMARY KEY)", "INSERT INTO photos VALUES "+ids,
			"CREATE TABLE narrow (id "+[]string{"TINYINT", "INT"}[i]+" PRIMARY KEY)", "CREATE TABLE rotated (id BIGINT PRIMARY KEY)")
	}
	e.Servers[1].Exec(t, "INSERT INTO "+e.Schemas[1]+".narrow VALUES (-3), (40), (1000)")
	c := e.Conn(t, e.Schemas[0], nil)
	taken := func(name, want string) {
		t.Helper()
		if got := value(t, c, "SELECT NEXTVAL('"+name+"')"); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	exec(t, c, "CREATE SEQUENCE made MAXVALUE 1000 OWNED BY photos.id")
	taken("made", "701")
	exec(t, c, "ALTER SEQUENCE made OWNED BY NONE", "CREATE SEQUENCE photos NOCACHE START 100 MAXVALUE 1000", "ALTER SEQUENCE photos OWNED BY photos.id")
	taken("photos", "701")
	exec(t, c, "CREATE SEQUENCE narrow OWNED BY narrow.id",
		"CREATE SEQUENCE rotated ROTATE 1 DIGITS 6 OWNED BY rotated.id")
	taken("narrow", "41")

	e.Servers[0].Exec(t, "INSERT INTO "+e.Schemas[0]+".photos VALUES (900)", "INSERT INTO "+e.Schemas[0]+".rotated VALUES (900), (999999)")
	const photos = "note: shard s0: @.photos.id goes up to 5000, beyond the end of the sequence, 1000\n"
	const rotated = "note: shard s0: @.rotated.id has a key whose counter would be 999999: the sequence hardly gave that key, and would end above it; if it gave the key, as before a restore, RESTART the sequence above it\n"
	for _, test := range []struct{ op, name, want string }{
		{"CHECK", "photos", photos + "Error: shard s0: @.photos.id goes up to 900, above the counter, which stands at 701: those keys would be given again. " +
			"REPAIR SEQUENCE `photos` raises it\nnote: shard s1: @.photos.id goes up to 700\nerror: Corrupt"},
		{"REPAIR", "photos", photos + "note: shard s0: @.photos.id goes up to 900, above the counter, which stood at 701\n" +
			"note: shard s1: @.photos.id goes up to 700\ninfo: raised from 701 to 900\nstatus: OK"},
		{"REPAIR", "rotated", rotated + "note: shard s0: @.rotated.id has keys whose counters go up to 9000, above the counter, which stood at 0\n" +
			"note: shard s1: @.rotated.id has keys whose counters go up to 0\ninfo: raised from 0 to 9000\nstatus: OK"},
	} {
		e.says(t, c, test.op, test.name, test.want)
	}
	taken("photos", "901")
}

// Somebody deletes the row of a sequence whose column has AUTO_INCREMENT on both shards, and does
// what the error says.
func TestTheCureOfADeletedRowLeavesTheColumnToTheSequence(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	for i := range e.Servers {
		e.Servers[i].Exec(t, "USE "+e.Schemas[i], "CREATE TABLE photos (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, title TEXT)")
	}
	c := e.Conn(t, e.Schemas[1], nil)
	insert := func() string {
		exec(t, c, "INSERT INTO photos (title) VALUES ('sea')")
		return value(t, c, "SELECT LAST_INSERT_ID()")
	}
	exec(t, c, "CREATE SEQUENCE photos NOCACHE OWNED BY photos.id")
	if got := insert(); got != "1" {
		t.Errorf("got %s, want 1", got)
	}
	deleted := fmt.Sprintf("DELETE FROM %s.sequence WHERE name = 'photos'", e.SequenceSchema)
	e.Servers[0].Exec(t, deleted)
	wantError(t, c, 4091, "INSERT INTO photos (title) VALUES ('sea')", "its row was deleted", "CREATE SEQUENCE `photos` START WITH n", "OWNED BY")
	exec(t, c, "FLUSH SEQUENCES")
	wantError(t, c, 1105, "CREATE SEQUENCE photos START WITH 5000", "was deleted", "START WITH n OWNED BY `photos`.`id`")
	exec(t, c, "CREATE SEQUENCE photos START WITH 5000 OWNED BY `photos`.`id` NOCACHE")
	if got := insert(); got != "5000" {
		t.Errorf("after the cure: got %s, want 5000", got)
	}
	if got := createOf(t, e, "photos"); !strings.Contains(got, "nocache") || !strings.Contains(got, "owned by `photos`.`id`") {
		t.Errorf("got %s, want what it says", got)
	}
	e.Servers[0].Exec(t, deleted)
	exec(t, c, "FLUSH SEQUENCES", "CREATE SEQUENCE photos START WITH 7000 OWNED BY NONE")
	if got := createOf(t, e, "photos"); strings.Contains(got, "owned") {
		t.Errorf("got %s, want no owner", got)
	}
}

// A column whose sequence went without a word would get the keys of each shard's AUTO_INCREMENT.
func TestAColumnLosesItsSequenceOnlyIfTheStatementSaysSo(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	for i := range e.Servers {
		e.Servers[i].Exec(t, "USE "+e.Schemas[i], "CREATE TABLE photos (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, title TEXT)")
	}
	c := e.Conn(t, e.Schemas[0], nil)
	insert := func(want string) {
		t.Helper()
		exec(t, c, "INSERT INTO photos (title) VALUES ('sea')")
		if got := value(t, c, "SELECT LAST_INSERT_ID()"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	exec(t, c, "CREATE SEQUENCE photos NOCACHE START 1000 OWNED BY photos.id", "CREATE SEQUENCE albums")
	wantError(t, c, 1210, "CREATE OR REPLACE SEQUENCE photos", "`photos`.`id`", "OWNED BY NONE")
	insert("1000")
	exec(t, c, "CREATE OR REPLACE SEQUENCE photos NOCACHE OWNED BY photos.id")
	insert("1001")
	e.Servers[0].Exec(t, fmt.Sprintf("DELETE FROM %s.sequence WHERE name = 'photos'", e.SequenceSchema))
	exec(t, c, "FLUSH SEQUENCES")
	wantError(t, c, 1105, "CREATE OR REPLACE SEQUENCE photos START WITH 5000", "was deleted", "OWNED BY NONE")
	exec(t, c, "CREATE OR REPLACE SEQUENCE photos START WITH 5000 OWNED BY photos.id")
	insert("5000")
	const note = "from now on each server's own AUTO_INCREMENT, or nobody, gives the keys of photos.id"
	exec(t, c, "DROP SEQUENCE IF EXISTS albums, photos, nobody")
	if _, rows := table(t, c, "SHOW WARNINGS"); len(rows) != 1 || rows[0][2] != note || len(note) >= 128 {
		t.Errorf("DROP: noted %q, want %q", rows, note)
	}
	exec(t, c, "CREATE SEQUENCE photos OWNED BY photos.id", "CREATE OR REPLACE SEQUENCE photos OWNED BY NONE", "DROP SEQUENCE photos")
	if _, rows := table(t, c, "SHOW WARNINGS"); len(rows) != 0 {
		t.Errorf("DROP of a sequence that no column owns: noted %q", rows)
	}
}

// says checks what CHECK or REPAIR says of a sequence, with @ for the schema of each shard.
func (e *env) says(t *testing.T, c *sql.Conn, op, name, want string) {
	t.Helper()
	_, rows := table(t, c, op+" SEQUENCE "+name)
	got := strings.NewReplacer(e.Schemas[0], "@", e.Schemas[1], "@").Replace(said(t, rows, strings.ToLower(op)))
	if got != want {
		t.Errorf("%s SEQUENCE %s: got\n%s\nwant\n%s", op, name, got, want)
	}
}

// One odd row with the last number of the sequence, or of the column, as a sentinel or a key that
// was cut, ends no sequence.
func TestAKeyAtTheEndOfTheColumnEndsNoSequence(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	for i := range e.Servers {
		e.Servers[i].Exec(t, "USE "+e.Schemas[i], "CREATE TABLE photos (id INT PRIMARY KEY)", "CREATE TABLE steps (id TINYINT PRIMARY KEY)",
			"CREATE TABLE wide (id BIGINT UNSIGNED PRIMARY KEY)", "INSERT INTO photos VALUES (70)")
	}
	c := e.Conn(t, e.Schemas[0], nil)
	taken := func(name, want string) {
		t.Helper()
		if got := value(t, c, "SELECT NEXTVAL('"+name+"')"); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	exec(t, c, "CREATE SEQUENCE photos NOCACHE OWNED BY photos.id", "CREATE SEQUENCE steps INCREMENT 10 NOCACHE OWNED BY steps.id",
		"CREATE SEQUENCE wide NOCACHE OWNED BY wide.id", "CREATE SEQUENCE later START 50")
	e.Servers[1].Exec(t, "USE "+e.Schemas[1], "INSERT INTO photos VALUES (500), (2147483646)", "INSERT INTO steps VALUES (30), (122)", "INSERT INTO wide VALUES (18446744073709551615)")
	for _, test := range []struct{ op, name, want string }{
		{"CHECK", "photos", "Error: shard s1: @.photos.id goes up to 2147483646, the last number of the sequence: DELETE that row, or ALTER SEQUENCE `photos` MAXVALUE 2147483645\n" +
			"note: shard s0: @.photos.id goes up to 70\n" +
			"Error: shard s1: @.photos.id goes up to 500, above the counter, which stands at 70: those keys would be given again. REPAIR SEQUENCE `photos` raises it\nerror: Corrupt"},
		{"REPAIR", "photos", "Error: shard s1: @.photos.id goes up to 2147483646, the last number of the sequence: DELETE that row, or ALTER SEQUENCE `photos` MAXVALUE 2147483645\n" +
			"note: shard s0: @.photos.id goes up to 70\n" +
			"note: shard s1: @.photos.id goes up to 500, above the counter, which stood at 70\ninfo: raised from 70 to 500\nstatus: Operation failed"},
		{"REPAIR", "steps", "Error: shard s1: @.steps.id goes up to 122, the last number of the sequence: DELETE that row, or ALTER SEQUENCE `steps` MAXVALUE 121\n" +
			"note: shard s0: @.steps.id goes up to 0\n" +
			"note: shard s1: @.steps.id goes up to 30, above the counter, which stood at 0\ninfo: raised from 0 to 30\nstatus: Operation failed"},
		{"REPAIR", "wide", "note: shard s1: @.wide.id goes up to 18446744073709551615, beyond the end of the sequence, 18446744073709551614\n" +
			"note: shard s0: @.wide.id goes up to 0\nnote: shard s1: @.wide.id goes up to 0\nstatus: OK"},
	} {
		e.says(t, c, test.op, test.name, test.want)
	}
	taken("photos", "501")
	taken("steps", "31")
	taken("wide", "1")
	exec(t, c, "ALTER SEQUENCE photos MAXVALUE 2147483645")
	if _, rows := table(t, c, "REPAIR SEQUENCE photos"); !strings.HasSuffix(said(t, rows, "repair"), "status: OK") {
		t.Errorf("after the way out: got %v", rows)
	}
	exec(t, c, "ALTER SEQUENCE photos OWNED BY NONE")
	for _, text := range []string{"CREATE SEQUENCE made OWNED BY photos.id", "ALTER SEQUENCE later OWNED BY photos.id"} {
		wantError(t, c, 1210, text, "shard s1 has keys up to 2147483646", "MAXVALUE 2147483645")
	}
	exec(t, c, "CREATE SEQUENCE made MAXVALUE 2147483645 OWNED BY photos.id")
	taken("made", "501")
	exec(t, c, "DROP SEQUENCE made", "ALTER SEQUENCE later MAXVALUE 2147483645 OWNED BY photos.id")
	taken("later", "501")
	// Who is at the end has such a key by right.
	exec(t, c, "SELECT SETVAL('later', 2147483644)")
	taken("later", "2147483645")
	e.Servers[0].Exec(t, "INSERT INTO "+e.Schemas[0]+".photos VALUES (2147483645)")
	exec(t, c, "ALTER SEQUENCE later OWNED BY photos.id")
	if _, rows := table(t, c, "CHECK SEQUENCE later"); !strings.HasSuffix(said(t, rows, "check"), "status: OK") {
		t.Errorf("at the end: got %v", rows)
	}
}

// A column is narrower on one shard than when it came to own the sequence, as after a new shard was
// made of an old dump.
func TestAColumnNarrowerThanItsSequenceIsAnErrorOfCHECK(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	for i := range e.Servers {
		e.Servers[i].Exec(t, "USE "+e.Schemas[i], "CREATE TABLE photos (id INT PRIMARY KEY)", "CREATE TABLE rotated (id BIGINT PRIMARY KEY)",
			"CREATE TABLE full (id TINYINT PRIMARY KEY)", "INSERT INTO full VALUES (1)")
	}
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "CREATE SEQUENCE photos NOCACHE START 40000 OWNED BY photos.id", "SELECT NEXTVAL('photos')", "CREATE SEQUENCE rotated ROTATE 1 DIGITS 6 OWNED BY rotated.id",
		"CREATE SEQUENCE full NOCACHE START 126 OWNED BY full.id", "SELECT NEXTVAL('full')")
	e.Servers[1].Exec(t, "USE "+e.Schemas[1], "ALTER TABLE photos MODIFY id SMALLINT", "ALTER TABLE rotated MODIFY id SMALLINT", "INSERT INTO photos VALUES (70)")
	for name, want := range map[string]string{
		"photos": "2147483646", "rotated": "999999",
	} {
		for _, op := range []string{"check", "repair"} {
			_, rows := table(t, c, op+" SEQUENCE "+name)
			got := said(t, rows, op)
			for _, part := range []string{"Error: shard s1, table " + e.Schemas[1] + "." + name + ": the column is of the type smallint", "go up to " + want + ": make it wider"} {
				if !strings.Contains(got, part) || strings.Contains(got, "status: OK") {
					t.Errorf("%s %s: got\n%s\nwant %q", op, name, got, part)
				}
			}
			if strings.Count(got, "smallint") != 1 {
				t.Errorf("%s %s: got\n%s\nwant the type once", op, name, got)
			}
		}
	}
	// The counter is above the new end: no shard would get a key.
	wantError(t, c, 1210, "ALTER SEQUENCE photos OWNED BY photos.id", "up to 32767", "40000", "wider")
	if got := value(t, c, "SELECT NEXTVAL('photos')"); got != "40001" {
		t.Errorf("after the ALTER that was refused: got %s, want 40001", got)
	}
	exec(t, c, "ALTER SEQUENCE full OWNED BY full.id") // it has run out, and nothing is lost
}
