package proxy_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence/kind"
)

// With multi_row = "first" each row that is filled in has a key of its own, and the insert id is
// that of the first row.
func TestTheInsertIDOfSeveralRowsIsTheFirstOnes(t *testing.T) {
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) { o.MultiRowFirst = true }})
	for i, clause := range []string{"bit_reversed", "rotate 1 digits 12", "shard bits 4", "increment by 3"} {
		t.Run(clause, func(t *testing.T) {
			k, _ := kind.Parse(clause) // "plain" is no kind
			name := fmt.Sprintf("k%d", i)
			e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE "+name+" (id BIGINT PRIMARY KEY, n INT, UNIQUE (n))")
			c := e.Conn(t, e.Schemas[0], nil)
			exec(t, c, "CREATE SEQUENCE "+name+" "+clause+" OWNED BY "+name+".id")
			step := uint64(1)
			if clause == "increment by 3" {
				step = 3
			}
			var before uint64 // counter of the last key
			n := 0            // of the last row
			// rows checks that the rows have keys of consecutive counters, and that the insert id
			// is the first key.
			rows := func(what string, id int64, count int) {
				t.Helper()
				keys := names(t, c, fmt.Sprintf("SELECT id FROM %s WHERE n > %d ORDER BY n", name, n))
				n += count
				if len(keys) != count || keys[0] != strconv.FormatInt(id, 10) {
					t.Fatalf("%s: the insert id is %d, and the keys are %q", what, id, keys)
				}
				for _, key := range keys {
					counter := keyOf(t, k, key)
					if before != 0 && counter != before+step {
						t.Errorf("%s: the key %s has the counter %d after %d", what, key, counter, before)
					}
					before = counter
				}
			}
			insert := func(what, text string, args ...any) {
				t.Helper()
				r, err := c.ExecContext(t.Context(), text, args...)
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				id, _ := r.LastInsertId()
				if got := value(t, c, "SELECT LAST_INSERT_ID()"); got != strconv.FormatInt(id, 10) {
					t.Errorf("%s: LAST_INSERT_ID() is %s and the insert id %d", what, got, id)
				}
				rows(what, id, 3)
			}
			into := "INSERT INTO " + name
			insert("a text", into+" (n) VALUES (1), (2), (3)")
			insert("NULL and DEFAULT", into+" VALUES (NULL, 4), (DEFAULT, 5), (NULL, 6)")
			insert("ON DUPLICATE KEY UPDATE", into+" (n) VALUES (7), (8), (9) ON DUPLICATE KEY UPDATE n = n + 100")
			insert("IGNORE", "INSERT IGNORE INTO "+name+" (n) VALUES (10), (11), (12)")
			insert("prepared", into+" (n) VALUES (?), (?), (?)", 13, 14, 15)
			insert("prepared with NULL", into+" VALUES (?, ?), (?, ?), (NULL, 18)", nil, 16, nil, 17)
			if hello, _ := e.Shards.Routes().Greeting(); hello.Capabilities.Has(protocol.BulkOperations) {
				p, _ := e.bulkPair(t)
				id := p.Proxy.do(protocol.ComStmtPrepare, into+" (n) VALUES (?)")[5:9]
				p.Proxy.do(protocol.ComStmtBulkExecute, string(id)+bulkRows(0, typeLong, bulkLong(19), bulkLong(20), bulkLong(21)))
				first, err := strconv.ParseInt(value(t, c, "SELECT id FROM "+name+" WHERE n = 19"), 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				rows("bulk", first, 3)
			}
			// An explicit key among the rows stays.
			r, err := c.ExecContext(t.Context(), into+" VALUES (NULL, 22), (77, 23), (NULL, 24)")
			if err != nil {
				t.Fatal(err)
			}
			id, _ := r.LastInsertId()
			if keys := names(t, c, "SELECT id FROM "+name+" WHERE n > 21 ORDER BY n"); len(keys) != 3 || keys[0] != strconv.FormatInt(id, 10) ||
				keys[1] != "77" || slices.Contains(keys[:1], keys[2]) {
				t.Errorf("the insert id is %d, and the keys are %q", id, keys)
			}
		})
	}
}

// Without the option the error names it.
func TestSeveralRowsOfAKindAreRefusedWithTheOption(t *testing.T) {
	e := newEnv(t, setup{})
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE t (id BIGINT PRIMARY KEY, n INT)", "CREATE TABLE threes (id BIGINT PRIMARY KEY, n INT)")
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "CREATE SEQUENCE t BIT_REVERSED OWNED BY t.id", "CREATE SEQUENCE threes INCREMENT BY 3 OWNED BY threes.id")
	wantError(t, c, 1235, "INSERT INTO t (n) VALUES (1), (2)", "into t, whose column id is filled from sequence t of kind BIT_REVERSED", "NEXTVAL in each row", `multi_row = "first"`)
	wantError(t, c, 1235, "INSERT INTO threes (n) VALUES (1), (2)", "INCREMENT BY 3", "auto_increment_increment", `multi_row = "first"`)
	if got := value(t, c, "SELECT (SELECT COUNT(*) FROM t) + (SELECT COUNT(*) FROM threes)"); got != "0" {
		t.Errorf("%s rows", got)
	}
}
