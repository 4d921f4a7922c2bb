package proxy_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"seqproxy/protocol"
	"seqproxy/test/mysqltest"
)

// returningTexts are statements whose RETURNING has a number for each row. «calls» are those, as
// for rowTexts; ‹› is a NEXTVAL('photos') that the server evaluates once.
var returningTexts = []struct {
	text string
	// id is LAST_INSERT_ID() afterwards: "first" of the numbers, "last" row's, "direct" as there,
	// "" as before.
	id string
}{
	{"INSERT INTO dst (id, a) VALUES (1, 'x'), (2, 'y'), (3, NULL) RETURNING «NEXTVAL('photos')», id", "first"},
	{"INSERT INTO dst VALUES (4, 'x'), (5, 'y') RETURNING *, «NEXTVAL('photos')» AS n, «NEXTVAL('other')»", "first"},
	{"INSERT INTO auto (a) VALUES ('x'), ('y') RETURNING id, «NEXTVAL('photos')», «NEXTVAL(photos)»", "direct"},
	{"REPLACE INTO auto (id, a) VALUES (1, 'z'), (NULL, 'z') RETURNING «NEXTVAL('other')», id, a", "direct"},
	{"REPLACE INTO auto (id, a) VALUES (1, 'z'), (2, 'z') RETURNING «NEXTVAL('photos')», id, a", "first"},
	{"INSERT IGNORE INTO auto (id, a) VALUES (1, 'z'), (90, 'z'), (1, 'z') RETURNING «NEXTVAL('photos')», id, a", "first"},
	{"INSERT INTO auto (id, a) VALUES (1, 'z'), (91, 'z') ON DUPLICATE KEY UPDATE a = 'w' RETURNING «NEXTVAL('photos')», id, a", "first"},
	{"INSERT INTO dst (id, a) VALUES (‹›, 'v'), (‹›, 'v') RETURNING a, «NEXTVAL('photos')»", "first"},
	{"INSERT INTO dst (id, a) VALUES (‹›, LAST_INSERT_ID()), (10, 'v') RETURNING a, «NEXTVAL('photos')»", "first"},
	{"INSERT INTO dst SELECT id, a FROM auto ORDER BY id RETURNING «NEXTVAL('photos')», id, a", "first"},
	{"INSERT INTO dst SELECT id, a FROM auto WHERE id < 0 RETURNING «NEXTVAL('photos')», id, a", ""},
	{"INSERT INTO dst SELECT ‹›, a FROM auto WHERE id < 0 RETURNING id", "1235"},
	{"DELETE FROM dst WHERE id < 4 ORDER BY id LIMIT 2 RETURNING id, «NEXTVAL('photos')»", "last"},
	{"DELETE FROM dst WHERE id < 0 RETURNING id, «NEXTVAL('photos')»", ""},
	// An error 1062 in the middle.
	{"INSERT INTO auto (id, a) VALUES (500, 'z'), (500, 'z') RETURNING «NEXTVAL('photos')», id", "first"},
	{"INSERT INTO dst (nothing) VALUES (1), (2) RETURNING «NEXTVAL('photos')»", ""},
	{"INSERT INTO dst (id) VALUES (1), (2) RETURNING 1 + NEXTVAL('photos')", "1235"},
	{"INSERT INTO dst (id) VALUES (1), (2) RETURNING (SELECT NEXTVAL('photos'))", "1235"},
	{"INSERT INTO dst (id) VALUES (1), (2) RETURNING NEXTVAL('photos'); SELECT 1", "1235"},
}

func TestEachRowOfReturningGetsANumberOfItsOwn(t *testing.T) {
	server := mysqltest.Shared(t)
	if !server.IsMariaDB() {
		t.Skip("MySQL has no RETURNING")
	}
	o := newOracle(t, setup{Servers: []*mysqltest.Server{server}},
		"CREATE TABLE dst (id BIGINT UNSIGNED, a VARCHAR(40)) ENGINE=MyISAM",
		"CREATE TABLE auto (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, a VARCHAR(40))")
	for _, prepared := range []bool{false, true} {
		p := o.pairOfSchemas(t, allFraming&^protocol.OptionalMetadata)
		schema := func(w *wire) []byte { return []byte(w.rows("SELECT DATABASE()")[0]) }
		p.query("SELECT LAST_INSERT_ID(77)")
		for _, step := range returningTexts {
			proxied, direct, sequences := rowCalls(step.text)
			next := map[string]uint64{"photos": o.nextNumber(t, "photos"), "other": o.nextNumber(t, "other")}
			first, before := next["photos"], p.Proxy.rows("SELECT LAST_INSERT_ID()")[0]
			call := "LAST_INSERT_ID(%d)"
			for strings.Contains(direct, "‹›") {
				direct = strings.Replace(direct, "‹›", fmt.Sprintf(call, next["photos"]), 1)
				call = "%d"
				next["photos"]++
			}
			direct = strings.Replace(direct, "LAST_INSERT_ID())", before+")", 1)
			proxied = strings.ReplaceAll(proxied, "‹›", "NEXTVAL('photos')")
			send := func(w *wire, text string) []byte {
				if !prepared || strings.Contains(text, ";") {
					return w.query(text)
				}
				got := w.do(protocol.ComStmtPrepare, text)
				if got[4] == 0 {
					got = w.do(protocol.ComStmtExecute, string(execution(binary.LittleEndian.Uint32(got[5:]), nil, true)[1:]))
				}
				return got
			}
			got := send(p.Proxy, proxied)
			if step.id == "1235" {
				if e := serverError(t, got); e.Code != 1235 || !strings.Contains(e.Message, "RETURNING") {
					t.Errorf("%s: got %v, want 1235", proxied, e)
				}
				continue
			}
			want, last := withNumbers(send(p.Direct, direct), prepared, sequences, next)
			compare(t, proxied, bytes.ReplaceAll(got, schema(p.Proxy), schema(p.Direct)), want)
			id := p.Proxy.rows("SELECT LAST_INSERT_ID()")[0]
			switch wanted := map[string]string{"first": fmt.Sprint(first), "last": fmt.Sprint(last), "": before, "direct": p.Direct.rows("SELECT LAST_INSERT_ID()")[0]}[step.id]; {
			case id != wanted:
				t.Errorf("LAST_INSERT_ID() after %s: got %s, want %s", proxied, id, wanted)
			case step.id != "" && step.id != "direct" && !strings.Contains(step.text, "500"):
				o.sameNext(t, proxied, next)
			}
			p.query("SELECT ROW_COUNT(), @@warning_count")
		}
		for _, table := range []string{"auto", "dst"} {
			if got, want := p.Proxy.rows("SELECT COUNT(*) FROM " + table)[0], p.Direct.rows("SELECT COUNT(*) FROM " + table)[0]; got != want {
				t.Errorf("rows of %s: got %s, want %s", table, got, want)
			}
		}
	}
}
