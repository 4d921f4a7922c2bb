package proxy_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy"
)

// sql_select_limit hides columns from SHOW COLUMNS. No row goes past the sequence for that, neither
// of the client who has set it nor of another.
func TestARowLimitHidesNoColumnThatIsFilledIn(t *testing.T) {
	const table = "CREATE TABLE photos (title VARCHAR(20), id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, n INT UNIQUE)"
	o := newOracle(t, bound(filledPhotos), table)
	for _, limit := range []int{0, 1, 2, 3} {
		o.fresh(t)
		c, other := o.Conn(t, o.Schemas[0], nil), o.Conn(t, o.Schemas[0], nil)
		exec(t, c, fmt.Sprintf("SET sql_select_limit = %d", limit))
		wantError(t, c, 1235, "INSERT INTO photos VALUES ('a', NULL, 1)", "sql_select_limit")
		exec(t, other, "INSERT INTO photos VALUES ('b', NULL, 2), ('c', 0, 3)")
		exec(t, c, "SET sql_select_limit = 4", "INSERT INTO photos VALUES ('d', NULL, 4)", "SET sql_select_limit = DEFAULT")
		if got := value(t, c, "SELECT CONCAT(COUNT(*), ' ', SUM(id > 1000)) FROM photos"); got != "3 3" {
			t.Errorf("limit %d: rows, and those with a number of the sequence: got %s, want 3 3", limit, got)
		}
		// The proxy does not see such a SET.
		several := o.Conn(t, o.Schemas[0], func(c *mysql.Config) { c.MultiStatements = true })
		exec(t, several, fmt.Sprintf("SET sql_select_limit = %d; DO 1", limit))
		wantError(t, several, 1235, "INSERT INTO photos VALUES ('a', NULL, 1)", "sql_select_limit")
		exec(t, several, "SET sql_select_limit = DEFAULT; DO 1")
		// Without a look at the columns the number is plain, though it may be in no row.
		exec(t, c, "ALTER TABLE photos MODIFY n INT", fmt.Sprintf("SET sql_select_limit = %d", limit), "INSERT IGNORE INTO photos (title) VALUES ('e')", "SET sql_select_limit = DEFAULT")
		if got := value(t, c, "SELECT SUM(id > 1000) FROM photos"); got != "4" {
			t.Errorf("limit %d: IGNORE: got %s rows with a number of the sequence, want 4", limit, got)
		}
	}
	o.fresh(t)
	c := o.Conn(t, o.Schemas[0], nil)
	exec(t, c, "CREATE TRIGGER aside BEFORE INSERT ON photos FOR EACH ROW SET NEW.n = 5", "CREATE TABLE src (title VARCHAR(20))", "SET sql_select_limit = 1")
	wantError(t, c, 1235, "INSERT INTO photos (title) SELECT title FROM src", "sql_select_limit")
	exec(t, c, "SET sql_select_limit = 2")
	wantError(t, c, 1235, "INSERT INTO photos (title) SELECT title FROM src", "trigger")
}

// withUser adds a user to those of a setup.
func withUser(s setup, u proxy.User) setup {
	options := s.Proxy
	s.Proxy = func(o *proxy.Options) { options(o); o.Users = append(o.Users, u) }
	return s
}

// An account that may use some columns of a table is told of no others. What it was told counts for
// nobody else's rows.
func TestAnAccountThatSeesFewColumnsHidesNoneFromOthers(t *testing.T) {
	narrow := proxy.User{Name: "sees_few", Password: "p"}
	o := newOracle(t, withUser(bound(filledPhotos), narrow), "CREATE TABLE photos (title VARCHAR(20), id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY)")
	o.fresh(t)
	o.Servers[0].Exec(t, "CREATE USER sees_few IDENTIFIED BY 'p'", "GRANT SELECT (title), INSERT (title) ON "+o.Schemas[0]+".photos TO sees_few")
	t.Cleanup(func() { o.Servers[0].Exec(t, "DROP USER sees_few") })
	few := o.Conn(t, o.Schemas[0], func(c *mysql.Config) { c.User, c.Passwd = narrow.Name, narrow.Password })
	c := o.Conn(t, o.Schemas[0], nil)
	wantError(t, few, 1143, "INSERT IGNORE INTO photos (title) VALUES ('a')")
	wantError(t, c, 1235, "PREPARE s FROM 'INSERT INTO photos (title) VALUES (''a'')'")
	prepared, err := c.PrepareContext(t.Context(), "INSERT INTO photos VALUES (?, NULL)")
	if err != nil {
		t.Fatal(err)
	}
	defer prepared.Close()
	exec(t, c, "INSERT INTO photos VALUES ('b', NULL)")
	if _, err := prepared.ExecContext(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	if got := value(t, c, "SELECT CONCAT(COUNT(*), ' ', SUM(id > 1000)) FROM photos"); got != "2 2" {
		t.Errorf("rows, and those with a number of the sequence: got %s, want 2 2", got)
	}
}

// Otherwise anybody who can log in could end a sequence: the next INSERT of all others would be
// error 4084.
func TestWhoMayNotInsertIntoATableMovesNoCounterByAKeyOfHisOwn(t *testing.T) {
	stranger := proxy.User{Name: "stranger", Password: "p"}
	o := newOracle(t, withUser(bound(filledPhotos), stranger), "CREATE TABLE photos (title VARCHAR(20), id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY)")
	o.fresh(t)
	o.Servers[0].Exec(t, "CREATE USER stranger IDENTIFIED BY 'p'")
	t.Cleanup(func() { o.Servers[0].Exec(t, "DROP USER stranger") })
	photos, end := o.Schemas[0]+".photos", "9223372036854775807"
	c, strange := o.Conn(t, o.Schemas[0], nil), o.Conn(t, "", func(c *mysql.Config) {
		c.User, c.Passwd, c.MultiStatements = stranger.Name, stranger.Password, true
	})
	exec(t, c, "INSERT INTO photos (title) VALUES ('a')")
	for _, text := range []string{
		"INSERT INTO " + photos + " (id) VALUES (" + end + ")",
		"REPLACE " + photos + " SET title = 'b', id = " + end,
		"INSERT INTO " + photos + " (id) VALUES (NULL), (" + end + ")",
		"DO 1; INSERT INTO " + photos + " (id) VALUES (" + end + ")",
	} {
		want := uint16(1142)
		if strings.HasPrefix(text, "DO") { // an earlier statement may give the right
			want = 1235
		}
		wantError(t, strange, want, text)
	}
	wantError(t, strange, 1046, "INSERT INTO photos (id) VALUES ("+end+")")
	for text, want := range map[string]uint16{
		"INSERT INTO " + photos + " (id) VALUES (" + end + ")":           1142,
		"INSERT INTO " + photos + " (id, title) VALUES (" + end + ", ?)": 1142,
		"INSERT INTO photos (id) VALUES (" + end + ")":                   1046,
	} {
		_, err := strange.PrepareContext(t.Context(), text)
		if refused := new(mysql.MySQLError); !errors.As(err, &refused) || refused.Number != want {
			t.Errorf("PREPARE of %s: got %v, want %d", text, err, want)
		}
	}
	// FLUSH empties the memory of the sequence, so that the next key shows where the counter is.
	exec(t, c, "FLUSH SEQUENCES", "INSERT INTO photos (title) VALUES ('c')")
	if got := value(t, c, "SELECT MAX(id) < 100000 FROM photos"); got != "1" {
		t.Errorf("keys below 100000: got %s, want 1", got)
	}
	// Who may insert moves it, by a text and by PREPARE. A right to the columns is enough.
	o.Servers[0].Exec(t, "GRANT INSERT (id) ON "+photos+" TO stranger")
	exec(t, strange, "INSERT INTO "+photos+" (id) VALUES (200000)")
	exec(t, c, "FLUSH SEQUENCES", "INSERT INTO photos (title) VALUES ('d')")
	if got := value(t, c, "SELECT MAX(id) > 200000 FROM photos"); got != "1" {
		t.Errorf("keys above 200000: got %s, want 1", got)
	}
	prepared, err := strange.PrepareContext(t.Context(), "INSERT INTO "+photos+" (id) VALUES (400000)")
	if err != nil {
		t.Fatal(err)
	}
	defer prepared.Close()
	if _, err := prepared.ExecContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec(t, c, "FLUSH SEQUENCES", "INSERT INTO photos (title) VALUES ('e')")
	if got := value(t, c, "SELECT MAX(id) > 400000 FROM photos"); got != "1" {
		t.Errorf("keys above 400000: got %s, want 1", got)
	}
}

// A column is bound in every schema, and temporary tables are not told apart. So whoever may make a
// table anywhere could end a sequence.
func TestWhoMayNotUseASequenceMovesItByNoKeyOfATableOfHisOwn(t *testing.T) {
	guest := proxy.User{Name: "guest", Password: "p", Sequences: []string{"own"}}
	o := newOracle(t, withUser(bound(filledPhotos, proxy.Binding{Table: "owned", Column: "id", Sequence: "own"}), guest),
		"CREATE TABLE photos (title VARCHAR(20), id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY)")
	o.fresh(t)
	createSequence(t, o.env, "own")
	o.Servers[0].Exec(t, "CREATE USER guest IDENTIFIED BY 'p'", "GRANT SELECT, CREATE TEMPORARY TABLES ON "+o.Schemas[0]+".* TO guest")
	t.Cleanup(func() { o.Servers[0].Exec(t, "DROP USER guest") })
	const end = "9223372036854775807"
	c, g := o.Conn(t, o.Schemas[0], nil), o.Conn(t, o.Schemas[0], func(c *mysql.Config) { c.User, c.Passwd = guest.Name, guest.Password })
	exec(t, c, "INSERT INTO photos (title) VALUES ('a')")
	exec(t, g, "CREATE TEMPORARY TABLE photos (title VARCHAR(20), id BIGINT UNSIGNED PRIMARY KEY)", "CREATE TEMPORARY TABLE owned (id BIGINT UNSIGNED PRIMARY KEY)")
	for _, how := range []string{"text", "prepared"} {
		for _, text := range []string{
			"INSERT INTO photos (id) VALUES (" + end + ")", "INSERT INTO photos VALUES ('b', " + end + "), ('c', 1)", "REPLACE photos SET id = " + end,
		} {
			checkError(t, how+", "+text, run(t.Context(), g, how, text), 1227, "Access denied", "right to use the sequence '"+filledPhotos.Sequence+"'")
		}
	}
	_, err := g.ExecContext(t.Context(), "INSERT INTO photos (id) VALUES (?)", uint64(math.MaxInt64))
	checkError(t, "with a parameter", err, 1227, filledPhotos.Sequence)
	exec(t, c, "FLUSH SEQUENCES", "INSERT INTO photos (title) VALUES ('d')")
	if got := value(t, c, "SELECT MAX(id) < 100000 FROM photos"); got != "1" {
		t.Errorf("keys below 100000: got %s, want 1", got)
	}
	// A key that moves no counter needs no right, and a sequence that he may use moves.
	exec(t, g, "INSERT INTO photos (id) VALUES (1)", "INSERT INTO owned VALUES (200000)")
	if got := value(t, g, "SELECT NEXTVAL('own') > 200000"); got != "1" {
		t.Errorf("a number above 200000: got %s, want 1", got)
	}
}

// The server tells the names of columns in character_set_results. Where that is no set in which a
// name can be read, the INSERT is refused.
func TestColumnsThatAreToldInAWideCharacterSetHideNoneThatIsFilledIn(t *testing.T) {
	o := newOracle(t, bound(filledPhotos), "CREATE TABLE photos (title VARCHAR(20), id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY)")
	o.fresh(t)
	for _, charset := range []string{"ucs2", "utf16", "utf32"} {
		c := o.Conn(t, o.Schemas[0], nil)
		exec(t, c, "SET character_set_results = "+charset)
		wantError(t, c, 1235, "INSERT INTO photos VALUES ('a', NULL)", "character_set_results", "SET NAMES utf8mb4")
	}
	c := o.Conn(t, o.Schemas[0], nil)
	exec(t, c, "INSERT INTO photos VALUES ('b', NULL)")
	if got := value(t, c, "SELECT CONCAT(COUNT(*), ' ', SUM(id > 1000)) FROM photos"); got != "1 1" {
		t.Errorf("rows, and those with a number of the sequence: got %s, want 1 1", got)
	}
}

// A column is bound in every schema, and this one has a table of that name without it.
func TestAnInsertIntoAnotherTableOfTheNameIsPreparedWithAnErrorThatTellsTheWayOut(t *testing.T) {
	o := newOracle(t, bound(filledPhotos), "CREATE TABLE photos (title VARCHAR(20))")
	o.fresh(t)
	c := o.Conn(t, o.Schemas[0], nil)
	exec(t, c, "INSERT INTO photos (title) VALUES ('a')")
	for text, want := range map[string]uint16{"INSERT INTO photos (title) VALUES (?)": 1235, "INSERT INTO photos (id, nothing) VALUES (1, ?)": 1054} {
		_, err := c.PrepareContext(t.Context(), text)
		var refused *mysql.MySQLError
		if !errors.As(err, &refused) || refused.Number != want || want == 1235 && !strings.Contains(err.Error(), "`schema.photos.id`") {
			t.Errorf("%s: got %v, want %d", text, err, want)
		}
	}
	exec(t, c, "INSERT INTO photos (title) VALUES ('b')")
}

// The error of a text that is too long names the way for a row that alone is.
func TestALongValueOfABoundTableComesInPieces(t *testing.T) {
	o := newOracle(t, setup{Proxy: func(opts *proxy.Options) {
		opts.Bindings, opts.MaxStatement = []proxy.Binding{filledPhotos}, 1<<16
	}}, "CREATE TABLE photos (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, title LONGTEXT)")
	o.fresh(t)
	p := o.pairOfSchemas(t, allFraming&^protocol.QueryAttributes)
	long := strings.Repeat("x", 1<<19)
	err := serverError(t, p.Proxy.query("INSERT INTO photos (title) VALUES ('"+long+"')"))
	if err.Code != 1235 || !strings.Contains(err.Message, "COM_STMT_SEND_LONG_DATA") {
		t.Fatalf("got %v, want 1235 and the way out", err)
	}
	o.meets(t, p)
	pp := o.prepare(t, p, "INSERT INTO photos (title) VALUES (?)")
	pp.execute(true, longData(long))
	pp.sameRows("SELECT id, LENGTH(title) FROM photos")
}
