package main

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"seqproxy/sequence"
)

// sequenceToTry is a sequence that the tests take numbers of: of big they are big, and of
// pairs two apart.
func sequenceToTry(name string) sequence.CreateOptions {
	o := sequence.CreateOptions{Name: name, IfNotExists: true}
	switch name {
	case "big":
		o.Start = 1_000_000
	case "pairs":
		o.Increment = 2
	}
	return o
}

func (c *changing) sequenceCases() []reloadCase {
	// ahead reports whether many more numbers are reserved than were given.
	ahead := func(take int) func(*testing.T, *subject, *sql.Conn) string {
		return func(t *testing.T, _ *subject, running *sql.Conn) string {
			given := ""
			for range take {
				given = valueOf(running, "SELECT NEXTVAL('photos')")
			}
			n, err := strconv.ParseUint(given, 10, 64)
			if err != nil {
				t.Fatalf("NEXTVAL: %s", given)
			}
			var reserved uint64
			if err := c.first.DB(t, "").QueryRow("SELECT id FROM seqproxy.sequence WHERE name = 'photos'").Scan(&reserved); err != nil {
				t.Fatal(err)
			}
			if reserved-n > 20_000 {
				return "far"
			}
			return "near"
		}
	}
	bound := func(column, name string) part {
		return part{more: fmt.Sprintf("[[bind]]\ncolumn = '%s.filled.%s'\nsequence = '%s'\n", c.schema, column, name)}
	}
	pairs := fmt.Sprintf("[[bind]]\ncolumn = '%s.rows_of_pairs.id'\nsequence = 'pairs'\n", c.schema)
	return []reloadCase{
		{keys: []string{"sequence.cache"}, before: part{top: "sequence.cache = 2"}, after: part{top: "sequence.cache = 100_000"}, look: ahead(1), was: "near", is: "far"},
		{
			keys:   []string{"sequence.outage_cover"},
			before: part{top: "sequence.cache = 2\nsequence.outage_cover = '0s'"}, after: part{top: "sequence.cache = 2\nsequence.outage_cover = '100h'"},
			look: ahead(50), was: "near", is: "far",
		},
		{
			keys: []string{"sequence.allocate_timeout"}, is: "ended",
			before: part{top: "sequence.cache = 1\nsequence.allocate_timeout = '1h'"}, after: part{top: "sequence.cache = 1\nsequence.allocate_timeout = '100ms'"},
			look: func(t *testing.T, _ *subject, running *sql.Conn) string {
				lock, err := c.first.DB(t, "").Conn(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				defer lock.Close()
				if got := valueOf(lock, "LOCK TABLES seqproxy.sequence WRITE"); got != "ok" {
					t.Fatal(got)
				}
				defer valueOf(lock, "UNLOCK TABLES")
				for range 100 { // some may be in memory
					if got := valueOf(running, "SELECT IF(NEXTVAL('photos') > 0, 'given', '')"); got != "given" {
						return "ended"
					}
				}
				return "given"
			},
		},
		{
			keys: []string{"sequence.create_table"}, was: "1105", is: "1", then: func() {},
			before: part{top: "unknown_sequence = 'create'\nsequence.table = 'made_later'\nsequence.create_table = false"},
			after:  part{top: "unknown_sequence = 'create'\nsequence.table = 'made_later'\nsequence.create_table = true"},
			look:   inRunning("SELECT NEXTVAL('photos')"),
		},
		{
			keys: []string{"sequence.direct_writers"}, was: "1105", is: "ok",
			before: part{top: "admin_users = ['root']\nsequence.direct_writers = true\nsequence.table = 'divided'"},
			after:  part{top: "admin_users = ['root']\nsequence.direct_writers = false\nsequence.table = 'divided'"},
			look:   as("root", "r", "SEQPROXY ADD SEQUENCE SERVER '"+c.other.Addr()+"'"),
		},
		{
			keys: []string{"ticket.table"}, was: "by the server", is: "here",
			after: part{more: "[[ticket]]\ntable = 'sequence'\n"},
			look: func(t *testing.T, s *subject, running *sql.Conn) string {
				before := s.sequences.Stats().Given
				if got := valueOf(running, "UPDATE seqproxy.sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos'"); got != "ok" {
					t.Fatal(got)
				}
				if s.sequences.Stats().Given == before {
					return "by the server"
				}
				return "here"
			},
		},
		{
			keys: []string{"multi_row"}, was: "1235", is: "ok",
			before: part{more: pairs}, after: part{top: "multi_row = 'first'", more: pairs},
			look: inRunning("INSERT INTO " + c.schema + ".rows_of_pairs VALUES (NULL), (NULL)"),
		},
		{
			keys:   []string{"bind.column"},
			before: bound("id", "photos"), after: bound("other", "photos"),
			look: inRunning("INSERT INTO "+c.schema+".filled (n) VALUES (NULL)", "SELECT IF(other IS NULL, 'id', 'other') FROM "+c.schema+".filled ORDER BY n DESC LIMIT 1"),
			was:  "id", is: "other",
		},
		{
			keys:   []string{"bind.sequence"},
			before: bound("id", "photos"), after: bound("id", "big"),
			look: inRunning("INSERT INTO "+c.schema+".filled (n) VALUES (NULL)", "SELECT IF(id < 1000000, 'photos', 'big') FROM "+c.schema+".filled ORDER BY n DESC LIMIT 1"),
			was:  "photos", is: "big",
		},
	}
}

func (c *changing) shardCases() []reloadCase {
	first, other := strconv.Itoa(c.first.Port()), strconv.Itoa(c.other.Port())
	owns := func(schemas string) part {
		return part{top: "default_shard = 's'", more: fmt.Sprintf("[[shard]]\nname = 't'\nuser = 'root'\nschemas = [%s]\n[[shard.node]]\naddress = %q\n", schemas, c.other.Addr())}
	}
	file := func(name string) string { return fmt.Sprintf("%q", filepath.Join(c.dir, name)) }
	shard := func(keys string) part { return part{shard: keys, node: c.other.Addr()} }
	usable := func(t *testing.T, s *subject, _ *sql.Conn) string {
		if got := login(t, s.address(), "app", "p", nil, "SELECT 'usable'"); got == "usable" {
			return got
		}
		return "refused"
	}
	cipher := func(t *testing.T, s *subject, _ *sql.Conn) string {
		if login(t, s.address(), "app", "p", nil, "SHOW STATUS LIKE 'Ssl_cipher'") == "" {
			return "plain"
		}
		return "TLS"
	}
	verify := func(ca, name string) part {
		return shard(fmt.Sprintf("user = 'root'\ntls = 'VERIFY_IDENTITY'\ntls_ca_file = %q\ntls_server_name = %q\n", ca, name))
	}
	return []reloadCase{
		{
			keys: []string{"shard.name"}, was: "0", is: "1",
			before: part{top: "admin_users = ['app']"}, after: owns("'nobodys'"),
			look: func(t *testing.T, s *subject, running *sql.Conn) string {
				for _, shard := range s.shards.Stats() {
					if shard.Shard == "t" && valueOf(running, "SELECT 1") == "1" {
						return "1"
					}
				}
				return "0"
			},
		},
		{
			keys: []string{"shard.schemas"}, was: first, is: other,
			before: owns("'nobodys'"), after: owns(fmt.Sprintf("%q", c.schema)),
			look: inRunning("USE "+c.schema, "SELECT @@port"),
		},
		{keys: []string{"shard.node.address"}, after: part{node: c.other.Addr()}, look: inRunning("SELECT @@port"), was: first, is: other},
		{
			keys: []string{"shard.user"}, was: "root", is: "account",
			before: part{node: c.other.Addr()}, after: shard("user = 'account'\npassword = 'a'"),
			look: as("app", "p", "SELECT SUBSTRING_INDEX(USER(), '@', 1)"),
		},
		{keys: []string{"shard.password"}, before: shard("user = 'account'\npassword = 'x'"), after: shard("user = 'account'\npassword = 'a'"), look: usable, was: "refused", is: "usable"},
		{
			keys:   []string{"shard.password_file"},
			before: shard("user = 'account'\npassword_file = " + file("p1")), after: shard("user = 'account'\npassword_file = " + file("a")),
			look: usable, was: "refused", is: "usable",
		},
		{
			keys:   []string{"shard.password_env"},
			before: shard("user = 'account'\npassword_env = 'RELOAD_P1'"), after: shard("user = 'account'\npassword_env = 'RELOAD_A'"),
			look: usable, was: "refused", is: "usable",
		},
		{keys: []string{"shard.tls"}, before: shard("tls = 'DISABLED'"), after: shard("tls = 'REQUIRED'"), look: cipher, was: "plain", is: "TLS"},
		{keys: []string{"shard.tls_ca_file"}, before: verify(c.wrongCA.File, "db1.example"), after: verify(c.ca.File, "db1.example"), look: usable, was: "refused", is: "usable"},
		{keys: []string{"shard.tls_server_name"}, before: verify(c.ca.File, "db2.example"), after: verify(c.ca.File, "db1.example"), look: usable, was: "refused", is: "usable"},
		{
			keys:   []string{"shard.tls_cert_file", "shard.tls_key_file"},
			before: shard("user = 'certified'\ntls = 'REQUIRED'"),
			after:  shard(fmt.Sprintf("user = 'certified'\ntls = 'REQUIRED'\ntls_cert_file = %q\ntls_key_file = %q", c.one.CertFile, c.one.KeyFile)),
			look:   usable, was: "refused", is: "usable",
		},
	}
}

// TestADrainGoesByTheReloadedConfiguration stops a proxy with a transaction that would keep
// it for an hour by the configuration that it was started with.
func TestADrainGoesByTheReloadedConfiguration(t *testing.T) {
	c := newChanging(t)
	s := startSubject(t, c.text(part{top: "drain.timeout = '1h'"}))
	running := s.mustConnect(t, "app", "p")
	if got := valueOf(running, "BEGIN"); got != "ok" {
		t.Fatal(got)
	}
	s.reload(c.text(part{top: "drain.timeout = '0s'\ndrain.grace = '1ms'"}))
	s.ending.orderly()
	ended := make(chan struct{})
	go func() {
		s.drain()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("the drain did not end")
	}
	if !strings.Contains(s.logged(), `"event":"not ready any more"`) {
		t.Error("there was no grace")
	}
}
