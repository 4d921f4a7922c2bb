package proxy_test

import (
	"testing"

	"seqproxy/sequence"
)

// photosTables are the tables of the scripts.
var photosTables = []string{
	"CREATE TABLE photos (id BIGINT UNSIGNED PRIMARY KEY, title VARCHAR(100) NOT NULL DEFAULT '', parent BIGINT UNSIGNED, n INT)",
	"CREATE TABLE auto (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, a VARCHAR(20) NOT NULL, ref BIGINT UNSIGNED, UNIQUE (a))",
	"CREATE TABLE keyless (v BIGINT UNSIGNED, w BIGINT, x VARCHAR(50))",
	"INSERT INTO auto (id, a) VALUES (100, 'first'), (101, 'second')",
	"INSERT INTO photos (id, title) VALUES (1, 'one'), (2, 'two'), (3, 'three')",
}

// insertIDs reads everything that a statement leaves. Other scripts read each value alone, because
// together they are one statement.
const insertIDs = "SELECT LAST_INSERT_ID(), @@last_insert_id, @@identity"

// Checklist 28.
// Checklist 29.
func TestASelectOfNumbersIsWhatLastInsertIDWouldBe(t *testing.T) {
	o := newOracle(t, setup{}, photosTables...)
	var spellings []string
	calls := []string{
		"NEXTVAL('photos')", `NEXTVAL("photos")`, "NEXTVAL(photos)", "NEXTVAL(`photos`)", "nextval('photos')", "NextVal ( 'photos' )",
		"NEXTVAL( /* which */ 'photos'\t)", "NEXTVAL('Photos')", "NEXTVAL('PHOTOS')", "NEXTVAL(Photos)",
		"NEXTVAL('ph\\otos')",
	}
	if o.Servers[0].IsMariaDB() { // MySQL's default collation does not ignore trailing blanks
		calls = append(calls, "NEXTVAL('photos ')", "NEXTVAL(`photos  `)")
	}
	for _, call := range calls {
		spellings = append(spellings,
			"SELECT "+call+" => SELECT LAST_INSERT_ID({p1}) AS "+backquoted(call), insertIDs)
	}
	const one = " => SELECT LAST_INSERT_ID({p1})"
	o.run(t, []script{
		{"in every spelling", spellings},
		{"around the call", []string{
			"select nextval('photos')" + one + " AS `nextval('photos')`",
			"  SELECT\n\tNEXTVAL('photos')  " + one + " AS `NEXTVAL('photos')`",
			"SELECT NEXTVAL('photos');" + one + " AS `NEXTVAL('photos')`",
			"SELECT NEXTVAL('photos') ; ; " + one + " AS `NEXTVAL('photos')`",
			"/* a */ SELECT /* b */ NEXTVAL('photos') /* c */" + one + " AS `NEXTVAL('photos')`",
			"SELECT NEXTVAL('photos') -- the end" + one + " AS `NEXTVAL('photos')`",
			"SELECT NEXTVAL('photos') # the end" + one + " AS `NEXTVAL('photos')`",
			"SELECT NEXTVAL('photos') FROM DUAL" + one + " AS `NEXTVAL('photos')`",
			"SELECT NEXTVAL('photos') FROM dual;" + one + " AS `NEXTVAL('photos')`",
			"SELECT NEXTVAL('photos') AS id" + one + " AS id",
			"SELECT NEXTVAL('photos') id" + one + " id",
			"SELECT NEXTVAL('photos') AS `the id`" + one + " AS `the id`",
			"SELECT NEXTVAL('photos') 'the id' FROM DUAL" + one + " 'the id'",
			"SELECT NEXTVAL('photos') AS \"i\"\"d\"" + one + " AS \"i\"\"d\"",
			"SELECT NEXTVAL('photos') AS `größe`" + one + " AS `größe`",
			insertIDs,
		}},
		{"several", []string{
			"SELECT NEXTVAL('photos'), NEXTVAL('photos') => SELECT LAST_INSERT_ID({p1}) AS `NEXTVAL('photos')`, LAST_INSERT_ID({p2}) AS `NEXTVAL('photos')`",
			"direct: SELECT LAST_INSERT_ID({p1})",
			insertIDs,
			"SELECT NEXTVAL('photos') a, NEXTVAL('other') b, NEXTVAL('photos') c => SELECT LAST_INSERT_ID({p1}) a, LAST_INSERT_ID({o1}) b, LAST_INSERT_ID({p2}) c",
			"direct: SELECT LAST_INSERT_ID({p1})",
			insertIDs,
			"SELECT NEXTVAL('other') a => SELECT LAST_INSERT_ID({o1}) a",
			insertIDs,
		}},
		{"after each other", []string{
			"SELECT NEXTVAL('photos') a => SELECT LAST_INSERT_ID({p1}) a",
			"SELECT NEXTVAL('photos') a => SELECT LAST_INSERT_ID({p1}) a",
			"SELECT LAST_INSERT_ID()",
			"SELECT LAST_INSERT_ID() AS x, @@identity y",
			"SELECT NEXTVAL('other') a => SELECT LAST_INSERT_ID({o1}) a",
			"SELECT @@LAST_INSERT_ID",
			"SELECT @@session.last_insert_id, @@local.identity",
			"select Last_Insert_Id ( ) ;",
			"SELECT LAST_INSERT_ID() + 1, CONCAT(LAST_INSERT_ID(), 'x') FROM photos",
		}},
		{"inside a transaction", []string{
			"BEGIN",
			"SELECT NEXTVAL('photos') a => SELECT LAST_INSERT_ID({p1}) a",
			"INSERT INTO photos (id) VALUES (77)",
			"SELECT NEXTVAL('photos') a => SELECT LAST_INSERT_ID({p1}) a",
			insertIDs,
			"ROLLBACK",
			insertIDs,
			"SET autocommit = 0",
			"SELECT NEXTVAL('photos') a => SELECT LAST_INSERT_ID({p1}) a",
			"SELECT COUNT(*) FROM photos",
			"SELECT NEXTVAL('photos') a => SELECT LAST_INSERT_ID({p1}) a",
			"COMMIT",
			"START TRANSACTION READ ONLY",
			"SELECT NEXTVAL('photos') a => SELECT LAST_INSERT_ID({p1}) a",
			"COMMIT",
			insertIDs,
		}},
		{"with other sql modes", []string{
			"SET sql_mode = 'ANSI_QUOTES'",
			`SELECT NEXTVAL("photos") AS "x" => SELECT LAST_INSERT_ID({p1}) AS "x"`,
			"SET sql_mode = 'NO_BACKSLASH_ESCAPES'",
			`SELECT NEXTVAL('photos') AS x => SELECT LAST_INSERT_ID({p1}) AS x`,
			"SET sql_mode = 'ORACLE'",
			`SELECT NEXTVAL('photos') AS x => SELECT LAST_INSERT_ID({p1}) AS x`,
			"SET NAMES latin1",
			`SELECT NEXTVAL('photos') AS x => SELECT LAST_INSERT_ID({p1}) AS x`,
			insertIDs,
		}},
	})
}

func TestARowLimitKeepsNoKeyFromAClientWithoutShards(t *testing.T) {
	e := newEnv(t, setup{Shards: noShards})
	if _, err := e.Sequences.Create(t.Context(), sequence.CreateOptions{Name: "photos"}); err != nil {
		t.Fatal(err)
	}
	c := e.Conn(t, "", nil)
	exec(t, c, "SET SQL_SELECT_LIMIT = 5") // drivers set it for a maximum of rows
	if got := value(t, c, "SELECT NEXTVAL('photos')"); got != "1" {
		t.Errorf("text: got %s, want 1", got)
	}
	stmt, err := c.PrepareContext(t.Context(), "SELECT NEXTVAL('photos')")
	if err != nil {
		t.Fatal(err)
	}
	defer stmt.Close()
	var got int
	if err := stmt.QueryRow().Scan(&got); err != nil || got != 2 {
		t.Errorf("prepared: got %d, %v, want 2", got, err)
	}
}

func backquoted(s string) string {
	b := []byte{'`'}
	for i := range len(s) {
		if s[i] == '`' {
			b = append(b, '`')
		}
		b = append(b, s[i])
	}
	return string(append(b, '`'))
}

func TestASelectThatOnlyTheServerCanAnswerIsRewritten(t *testing.T) {
	o := newOracle(t, setup{}, photosTables...)
	o.run(t, []script{
		{"SELECT with more around", []string{
			"SELECT NEXTVAL('photos') LIMIT 1 => SELECT LAST_INSERT_ID({p1}) AS `NEXTVAL('photos')` LIMIT 1",
			insertIDs,
			"SELECT NEXTVAL('photos') LIMIT 0 => SELECT LAST_INSERT_ID({p1}) AS `NEXTVAL('photos')` LIMIT 0",
			insertIDs,
			"SELECT «NEXTVAL('photos')» INTO @v",
			"SELECT ROW_COUNT()",
			"SELECT @v",
			insertIDs,
			"SELECT «NEXTVAL('photos')» AS a UNION ALL SELECT «NEXTVAL('photos')»",
			insertIDs,
			"(SELECT «NEXTVAL('photos')» AS a)",
			"SELECT «NEXTVAL('photos')» + 1 AS a",
			"SELECT NEXTVAL('photos') + 1 => SELECT LAST_INSERT_ID({p1}) + 1 AS `NEXTVAL('photos') + 1`",
			"SELECT -NEXTVAL('photos')  ,2 => SELECT -LAST_INSERT_ID({p1}) AS `-NEXTVAL('photos')`  ,2",
			"SELECT 1, NEXTVAL('photos'), 'x' => SELECT 1, LAST_INSERT_ID({p1}) AS `NEXTVAL('photos')`, 'x'",
			"SELECT CONCAT('p', «NEXTVAL('photos')») AS a, «NEXTVAL('photos')» AS b, HEX(«NEXTVAL('other')») AS c",
			insertIDs,
			"SELECT IF(1, «NEXTVAL('photos')», 0) AS a",
			"SELECT (SELECT «NEXTVAL('photos')») AS a",
			"SELECT «NEXTVAL('photos')» AS a WHERE 1",
			"SELECT DISTINCT «NEXTVAL('photos')» AS a",
			"SELECT SQL_NO_CACHE «NEXTVAL('photos')» AS a",
			"SELECT /*! «NEXTVAL('photos')» AS a */",
			insertIDs,
			"SELECT LAST_INSERT_ID(), ROW_COUNT(), FOUND_ROWS()",
		}},
		{"a limit of the session", []string{
			"SET sql_select_limit = 1",
			"SELECT NEXTVAL('photos') => SELECT LAST_INSERT_ID({p1}) AS `NEXTVAL('photos')`",
			insertIDs,
			"SET sql_select_limit = 0",
			"SELECT NEXTVAL('photos') => SELECT LAST_INSERT_ID({p1}) AS `NEXTVAL('photos')`",
			"SET sql_select_limit = DEFAULT",
			insertIDs,
			"SELECT NEXTVAL('photos') => SELECT LAST_INSERT_ID({p1}) AS `NEXTVAL('photos')`",
			insertIDs,
		}},
		{"a limit of the session that is set beside a call", []string{
			"SET @c = CONNECTION_ID() * 0, sql_select_limit = 0",
			"SELECT NEXTVAL('photos') => SELECT LAST_INSERT_ID({p1}) AS `NEXTVAL('photos')`",
			"SET sql_select_limit = DEFAULT",
			"SELECT @c",
			insertIDs,
		}},
		{"beside LAST_INSERT_ID()", []string{
			// LAST_INSERT_ID() is the previous value at any place of the text.
			"SELECT LAST_INSERT_ID(42)",
			"SELECT NEXTVAL('photos') AS a, LAST_INSERT_ID() AS b LIMIT 1 => SELECT LAST_INSERT_ID({p1}) AS a, COALESCE(CAST(42 AS UNSIGNED),LAST_INSERT_ID()) AS b LIMIT 1",
			insertIDs,
		}},
	})
}
