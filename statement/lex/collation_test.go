package lex_test

import (
	"testing"

	"seqproxy/statement/lex"
	"seqproxy/test/mysqltest"
)

func TestEveryCollationOfTheServerIsOfTheCharacterSetThatItSays(t *testing.T) {
	server := mysqltest.Shared(t)
	table := "COLLATIONS"
	if server.IsMariaDB() { // MariaDB lists collations of several character sets there without an id
		table = "COLLATION_CHARACTER_SET_APPLICABILITY"
	}
	rows, err := server.DB(t, "").Query("SELECT ID, CHARACTER_SET_NAME FROM information_schema." + table + " WHERE ID IS NOT NULL")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	seen := make(map[uint16]bool)
	for rows.Next() {
		var id uint16
		var want string
		if err := rows.Scan(&id, &want); err != nil {
			t.Fatal(err)
		}
		seen[id] = true
		if got := lex.CharsetOfCollation(id); got != want {
			t.Errorf("collation %d: got %q, want %q", id, got, want)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if len(seen) < 200 {
		t.Fatalf("the server has %d collations only", len(seen))
	}
	for id := range uint16(4096) {
		if lex.EverywhereCollation(id) && !seen[id] {
			t.Errorf("collation %d is taken for one of every server's, this one lacks it", id)
		}
	}
}

func TestIdsOfNoCollationHaveNoCharacterSet(t *testing.T) {
	for _, id := range []uint16{0, 17, 125, 191, 272, 560, 1024, 4000, 65535} {
		if got := lex.CharsetOfCollation(id); got != "" {
			t.Errorf("collation %d: got %q, want none", id, got)
		}
		if lex.CharsetByName(lex.CharsetOfCollation(id)) != lex.Unsupported {
			t.Errorf("collation %d: its texts are read", id)
		}
	}
}
