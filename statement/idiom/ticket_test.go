package idiom_test

import (
	"fmt"
	"strings"
	"testing"

	"seqproxy/statement"
	"seqproxy/statement/idiom"
	"seqproxy/statement/lex"
)

// show writes a Ticket as text.
func show(t idiom.Ticket, sql string) string {
	kinds := map[idiom.TicketKind]string{idiom.TicketUpdate: "update", idiom.TicketUpsert: "upsert", idiom.TicketReplace: "replace", idiom.TicketInsert: "insert"}
	table := string(t.Table)
	if t.Schema != nil {
		table = string(t.Schema) + "." + table
	}
	s := fmt.Sprintf("%s %s %s %s=%s +%d", kinds[t.Kind], table, t.ID, t.Column, t.Key, t.Step)
	if t.KeyParam >= 0 {
		s += fmt.Sprintf(" key?%d", t.KeyParam)
	}
	if t.StepParam >= 0 {
		s += fmt.Sprintf(" step?%d", t.StepParam)
	}
	if rest := sql[t.End:]; rest != "" {
		s += " then " + rest
	}
	return s
}

func TestIdiomsOfTicketServersAreRecognised(t *testing.T) {
	const photos = "update sequence id name=photos +1"
	for _, c := range []struct{ sql, want string }{
		{"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos'", photos},
		{"UPDATE `sequence` SET `id` = LAST_INSERT_ID(`id` + 1) WHERE `name` = 'photos';", photos},
		{"update sequence set id=last_insert_id(id+1) where name='photos'", photos},
		{"/* a */UPDATE\tsequence -- b\nSET id = LAST_INSERT_ID ( id + 1 ) WHERE name = \"photos\" # c", photos},
		{"UPDATE sequence SET id = LAST_INSERT_ID(1 + id) WHERE 'photos' = name LIMIT 1", photos},
		{"UPDATE sequence SET id = LAST_INSERT_ID((id + 1)) WHERE (name = 'photos')", photos},
		{"UPDATE sequence AS s SET s.id = LAST_INSERT_ID(s.id + 1) WHERE s.name = 'photos'", photos},
		{"UPDATE sequence s SET id = LAST_INSERT_ID(s.id + 1) WHERE name = 'photos'", photos},
		{"UPDATE sequence SET sequence.id = LAST_INSERT_ID(sequence.id + 1) WHERE sequence.name = 'photos'", photos},
		{"UPDATE ids.sequence SET id = LAST_INSERT_ID(ids.sequence.id + 1) WHERE name = 'photos'", "update ids.sequence id name=photos +1"},
		{"UPDATE sequence SET ID = LAST_INSERT_ID(id + 1) WHERE Name = 'it''s\\n'", "update sequence ID Name=it's\n +1"},
		{"UPDATE sequence SET id = LAST_INSERT_ID(id + 50) WHERE name = 'photos'", "update sequence id name=photos +50"},
		{"UPDATE sequence SET id = LAST_INSERT_ID(id + ?) WHERE name = ?", "update sequence id name= +1 key?1 step?0"},
		{"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = ?", "update sequence id name= +1 key?0"},
		{"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos'; SELECT LAST_INSERT_ID()", photos + " then  SELECT LAST_INSERT_ID()"},

		{"INSERT INTO sequence (name) VALUES ('x') ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id + 1)", "upsert sequence id name=x +1"},
		{"INSERT INTO `sequence`(`name`)VALUES('x')ON DUPLICATE KEY UPDATE `id`=LAST_INSERT_ID(`id`+1);", "upsert sequence id name=x +1"},
		{"insert sequence set name = ? on duplicate key update id = last_insert_id(sequence.id + ?)", "upsert sequence id name= +1 key?0 step?1"},
		{"INSERT INTO sequence (name, id) VALUES ('x', 0) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id + 5)", "upsert sequence id name=x +5"},
		{"INSERT INTO sequence (id, name) VALUES (1, 'x') ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id + 1)", "upsert sequence id name=x +1"},
		{"INSERT INTO sequence (name, id) VALUES ('x', LAST_INSERT_ID(1)) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id + 1)", "upsert sequence id name=x +1"},

		{"REPLACE INTO tickets64 (stub) VALUES ('a')", "replace tickets64  stub=a +1"},
		{"REPLACE INTO `tickets64` (`stub`) VALUES ('a');\nSELECT LAST_INSERT_ID();", "replace tickets64  stub=a +1 then \nSELECT LAST_INSERT_ID();"},
		{"REPLACE INTO id_temp (table_name) value(\"tablename\") ; SELECT LAST_INSERT_ID() ;", "replace id_temp  table_name=tablename +1 then  SELECT LAST_INSERT_ID() ;"},
		{"REPLACE tickets64 SET stub='a'", "replace tickets64  stub=a +1"},
		{"REPLACE INTO flickr.tickets64 (id, stub) VALUES (NULL, ?)", "replace flickr.tickets64 id stub= +1 key?0"},
		{"INSERT INTO ids_photos VALUES (NULL)", "insert ids_photos  = +1"},
		{"INSERT INTO ids_photos VALUES ()", "insert ids_photos  = +1"},
		{"INSERT INTO ids_photos () VALUES ()", "insert ids_photos  = +1"},
		{"INSERT INTO ids_photos (id) VALUES (NULL)", "insert ids_photos id = +1"},
		{"INSERT ids_photos (id) VALUE (DEFAULT)", "insert ids_photos id = +1"},
		{"INSERT INTO ids_photos SET id = NULL", "insert ids_photos id = +1"},
		{"REPLACE INTO ids_photos (id) VALUES (NULL)", "insert ids_photos id = +1"},

		// Texts that are not exactly one of the idioms.
		{"", ""},
		{"UPDATE sequence SET id = id + 1 WHERE name = 'photos'", ""},
		{"UPDATE sequence SET id = LAST_INSERT_ID(id + 1)", ""},
		{"UPDATE sequence SET id = LAST_INSERT_ID(id + 0) WHERE name = 'photos'", ""},
		{"UPDATE sequence SET id = LAST_INSERT_ID(id - 1) WHERE name = 'photos'", ""},
		{"UPDATE sequence SET id = LAST_INSERT_ID(id + 1.0) WHERE name = 'photos'", ""},
		{"UPDATE sequence SET id = LAST_INSERT_ID(id + 0x1) WHERE name = 'photos'", ""},
		{"UPDATE sequence SET id = LAST_INSERT_ID(id + 1000001) WHERE name = 'photos'", ""},
		{"UPDATE sequence SET id = LAST_INSERT_ID(id + 18446744073709551617) WHERE name = 'photos'", ""},
		{"UPDATE sequence SET id = LAST_INSERT_ID(id + 1 + 1) WHERE name = 'photos'", ""},
		{"UPDATE sequence SET id = LAST_INSERT_ID(id + '1') WHERE name = 'photos'", ""},
		{"UPDATE sequence SET id = LAST_INSERT_ID(other + 1) WHERE name = 'photos'", ""},
		{"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) + 1 WHERE name = 'photos'", ""},
		{"UPDATE sequence SET id = LAST_INSERT_ID(id + 1), name = 'x' WHERE name = 'photos'", ""},
		{"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos' AND id < 5", ""},
		{"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos' LIMIT 0", ""},
		{"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name LIKE 'photos'", ""},
		{"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = photos", ""},
		{"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 5", ""},
		{"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = N'photos'", ""},
		{"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = _utf8'photos'", ""},
		{"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'pho' 'tos'", ""},
		{"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos' COLLATE utf8mb4_bin", ""},
		{"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos' OR 1", ""},
		{"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos'/*! OR 1 */", ""},
		{"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos' RETURNING id", ""},
		{"UPDATE sequence s SET id = LAST_INSERT_ID(sequence.id + 1) WHERE name = 'photos'", ""},
		{"UPDATE sequence SET x.id = LAST_INSERT_ID(id + 1) WHERE name = 'photos'", ""},
		{"UPDATE sequence, other SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos'", ""},
		{"UPDATE IGNORE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos'", ""},
		{"UPDATE a.b.sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos'", ""},
		{"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos", ""},
		{"UPDATE sequence SET id = LAST_INSERT_ID(id + ? WHERE name = 'photos'", ""},
		{"EXPLAIN UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos'", ""},
		{"INSERT INTO sequence (name) VALUES ('x')", ""},
		{"INSERT IGNORE INTO sequence (name) VALUES ('x') ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id + 1)", ""},
		{"INSERT INTO sequence (name) VALUES ('x'), ('y') ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id + 1)", ""},
		{"INSERT INTO sequence VALUES ('x', 1) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id + 1)", ""},
		{"INSERT INTO sequence (name, id) VALUES ('x', 2) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id + 1)", ""},
		{"INSERT INTO sequence (name, id) VALUES ('x', 1) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id + 5)", ""},
		{"INSERT INTO sequence (name, id) VALUES ('x', NULL) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id + 1)", ""},
		{"INSERT INTO sequence (name, other) VALUES ('x', 1) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id + 1)", ""},
		{"INSERT INTO sequence (name) VALUES ('x') AS n ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id + 1)", ""},
		{"INSERT INTO sequence (name) SELECT 'x' ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id + 1)", ""},
		{"INSERT INTO tickets64 (stub) VALUES ('a')", ""},
		{"REPLACE INTO tickets64 (stub) VALUES ('a'), ('b')", ""},
		{"REPLACE INTO tickets64 (stub) VALUES (UPPER('a'))", ""},
		{"REPLACE INTO tickets64 (stub) VALUES ('a') RETURNING id", ""},
		{"REPLACE INTO tickets64 VALUES (NULL, 'a')", ""},
		{"REPLACE INTO tickets64 VALUES ('a')", ""},
		{"REPLACE INTO tickets64 (id, stub) VALUES (5, 'a')", ""},
		{"REPLACE INTO tickets64 (stub, other) VALUES ('a', 'b')", ""},
		{"REPLACE LOW_PRIORITY INTO tickets64 (stub) VALUES ('a')", ""},
		{"REPLACE INTO tickets64 (stub) SELECT 'a'", ""},
		{"INSERT INTO ids_photos VALUES (NULL), (NULL)", ""},
		{"INSERT INTO ids_photos VALUES (0)", ""},
		{"INSERT INTO ids_photos VALUES (5)", ""},
		{"INSERT INTO ids_photos (id) VALUES ()", ""},
		{"INSERT INTO ids_photos () VALUES (NULL)", ""},
		{"INSERT INTO ids_photos (id, x) VALUES (NULL, DEFAULT)", ""},
		{"DELETE FROM sequence", ""},
	} {
		got := ""
		if m, ok := idiom.MatchTicket([]byte(c.sql), lex.Mode{}); ok {
			got = show(m, c.sql)
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.sql, got, c.want)
		}
	}
}

func TestATicketIsReadInTheSessionsMode(t *testing.T) {
	double := []byte(`REPLACE INTO tickets64 (stub) VALUES ("a")`)
	if _, ok := idiom.MatchTicket(double, lex.Mode{SQLMode: lex.SQLMode{ANSIQuotes: true}}); ok {
		t.Errorf("%s with ANSI_QUOTES: got a ticket, but \"a\" is a column", double)
	}
	backslash := []byte(`REPLACE INTO tickets64 (stub) VALUES ('\')`)
	if m, ok := idiom.MatchTicket(backslash, lex.Mode{SQLMode: lex.SQLMode{NoBackslashEscapes: true}}); !ok || string(m.Key) != `\` {
		t.Errorf("%s with NO_BACKSLASH_ESCAPES: got %q, %v, want the key \\", backslash, m.Key, ok)
	}
	if _, ok := idiom.MatchTicket(backslash, lex.Mode{}); ok {
		t.Errorf("%s: got a ticket, but the string does not end", backslash)
	}
	if _, ok := idiom.MatchTicket(backslash, lex.Mode{Charset: lex.Unsupported}); ok {
		t.Errorf("%s in an unknown character set: got a ticket, want none", backslash)
	}
}

// FuzzMatchTicket checks that Analyze sees an INSERT, a REPLACE or an UPDATE in every recognized
// text, and that the ticket stays the same if another statement follows.
func FuzzMatchTicket(f *testing.F) {
	f.Add("UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos'")
	f.Add("REPLACE INTO id_temp (table_name) value(\"tablename\") ; SELECT LAST_INSERT_ID() ;")
	f.Add("INSERT INTO sequence (name, id) VALUES ('x', 1) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id + ?)")
	f.Fuzz(func(t *testing.T, sql string) {
		m, ok := idiom.MatchTicket([]byte(sql), lex.Mode{})
		if !ok {
			return
		}
		one := strings.TrimSuffix(sql[:m.End], ";")
		var st statement.Statement
		st.Analyze([]byte(one), lex.Mode{})
		if st.Kind != statement.Insert && st.Kind != statement.Replace && st.Kind != statement.Update {
			t.Fatalf("%q is of kind %d", one, st.Kind)
		}
		again, ok := idiom.MatchTicket([]byte(one+"; SELECT 1"), lex.Mode{})
		if !ok || string(again.Key) != string(m.Key) || again.Kind != m.Kind || again.Step != m.Step {
			t.Fatalf("%q: the ticket differs with a statement after it", one)
		}
	})
}

func BenchmarkMatchTicket(b *testing.B) {
	for name, sql := range map[string]string{
		"Yupoo":  "UPDATE `sequence` SET `id` = LAST_INSERT_ID(`id` + 1) WHERE `name` = 'photos'",
		"Flickr": "REPLACE INTO tickets64 (stub) VALUES ('a')",
		"other":  "UPDATE photos SET title = 'sea' WHERE id = 1001",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			text := []byte(sql)
			for b.Loop() {
				idiom.MatchTicket(text, lex.Mode{})
			}
		})
	}
}
