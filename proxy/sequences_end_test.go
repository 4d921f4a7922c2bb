package proxy_test

import (
	"fmt"
	"strings"
	"testing"

	"seqproxy/protocol"
)

func TestAStatementThatCrossesAMarkIsWarned(t *testing.T) {
	for name, s := range map[string]setup{"with a shard": {}, "keys only": {Shards: noShards}} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, s)
			schema := ""
			if s.Shards != noShards {
				schema = e.Schemas[0]
				e.Servers[0].Exec(t, "CREATE TABLE "+schema+".photos (id TINYINT UNSIGNED PRIMARY KEY)")
			}
			w := e.Wire(t, e.Addr(), wireLogin{Schema: schema})
			want := map[int]string{75: "75%", 90: "90%", 99: "99%"}
			w.query("CREATE SEQUENCE s MAXVALUE 100 NOCACHE")
			for i := 1; i <= 100; i++ {
				w.send(packet(command(protocol.ComQuery, "SELECT NEXTVAL('s')"))) // without a ping behind it, which resets the warnings
				answer := w.receive(protocol.ShapeResult, nil)
				if w.answer.ErrCode != 0 || w.answer.Warnings != uint16(len(want[i])/3) {
					t.Fatalf("number %d: got error %d and %d warnings, want %q: %x", i, w.answer.ErrCode, w.answer.Warnings, want[i], answer)
				}
				if want[i] == "" {
					continue
				}
				for range 2 {
					w.send(packet(command(protocol.ComQuery, "SHOW WARNINGS")))
					rows := w.decode(w.receive(protocol.ShapeResult, nil))
					if len(rows) != 1 || rows[0][0] != "Warning" || !strings.HasPrefix(rows[0][2], want[i]+" of the numbers of sequence 's' are used; the last is 100") {
						t.Errorf("number %d: SHOW WARNINGS tells %q, want %s", i, rows, want[i])
					}
				}
			}
			if s.Shards == noShards {
				return
			}
			// What the statement left beside the warning, and LAST_INSERT_ID().
			c := e.Conn(t, schema, nil)
			for i, test := range []struct{ ask, want string }{
				{"SELECT LAST_INSERT_ID()", "75"},
				{"SELECT @@warning_count", "1"},
				{"SELECT CONCAT(ROW_COUNT(), ' ', @@warning_count)", "-1 1"},
				{"SELECT FOUND_ROWS()", "1"},
			} {
				exec(t, c, fmt.Sprintf("CREATE SEQUENCE q%d MAXVALUE 100 NOCACHE START 75", i))
				if got := value(t, c, fmt.Sprintf("SELECT NEXTVAL('q%d')", i)); got != "75" {
					t.Fatalf("got %s, want 75", got)
				}
				if got := value(t, c, test.ask); got != test.want {
					t.Errorf("after a warning: %s: got %s, want %s", test.ask, got, test.want)
				}
			}
			c = e.Conn(t, schema, nil)
			// The end is that of the column which owns the sequence.
			exec(t, c, "CREATE SEQUENCE photos NOCACHE OWNED BY photos.id START 190", "SELECT NEXTVAL('photos')")
			if _, rows := table(t, c, "SHOW WARNINGS"); len(rows) != 0 {
				t.Errorf("190 of 255: got %q, want no warning", rows)
			}
			for range 2 {
				exec(t, c, "SELECT NEXTVAL('photos')")
			}
			if _, rows := table(t, c, "SHOW WARNINGS"); len(rows) != 1 || !strings.Contains(rows[0][2], "the last is 255") {
				t.Errorf("192 of 255: got %q, want a warning", rows)
			}
			if _, rows := table(t, c, "SHOW SEQUENCES LIKE 'photos'"); rows[0][7] != "75.29" {
				t.Errorf("used_percent: got %s, want 75.29", rows[0][7])
			}
		})
	}
}
