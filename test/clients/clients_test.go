package clients_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"seqproxy/internal/mysqld"
	"seqproxy/test/matrix"
)

// Sizes of the big value: larger than a packet and, for the further ways to log in, larger than a
// buffer.
const (
	bigValue   = 17 << 20
	smallerBig = 300_000
)

// pattern fills the big value.
const pattern = "0123456789abcde\x00"

// someOfIt matches a part of the big value, however a client writes its zero byte. It has more than
// 50 bytes: a shorter frame of the compressed protocol is not packed, and the rest of an answer
// that was read in pieces may be that short.
var someOfIt = regexp.MustCompile(`(0123456789abcde(\x00|\\0)){4}`)

// partOfIt is the length of the longest such part.
const partOfIt = 4 * (len(pattern) + 1)

func bigSum(size int) string {
	sum := sha256.Sum256([]byte(strings.Repeat(pattern, size/len(pattern)+1)[:size]))
	return hex.EncodeToString(sum[:])
}

// sessionQuery asks for the state that a login sets.
const sessionQuery = "SELECT CURRENT_USER(), USER(), DATABASE(), @@character_set_client, @@character_set_results, " +
	"@@collation_connection, @@autocommit, @@sql_mode, @@max_allowed_packet"

// tables are the tables for clients. types has a column of each kind.
func tables(schema string) []string {
	return []string{
		"DROP DATABASE IF EXISTS " + schema, "CREATE DATABASE " + schema + " CHARACTER SET utf8mb4", "USE " + schema,
		"CREATE TABLE types (id INT PRIMARY KEY, i INT, big BIGINT UNSIGNED, exact DECIMAL(20,6), d DATE, dt DATETIME(6)," +
			" t TIME(3), f DOUBLE, b BLOB, s VARCHAR(50), e ENUM('red','green'), y YEAR, bits BIT(9), j JSON)",
		"INSERT INTO types VALUES (1, -7, 18446744073709551615, 12345678901234.567800, '2024-02-29', '2024-02-29 23:59:58.123456'," +
			" '-12:34:56.789', 0.1, x'00ff270a', 'größe 🌊', 'green', 2024, b'101010101', '{\"a\": [1, null]}')," +
			" (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
		"CREATE TABLE photos (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, title VARCHAR(100) NOT NULL UNIQUE) ENGINE=InnoDB",
		"CREATE TABLE big (id INT PRIMARY KEY, data LONGBLOB) ENGINE=InnoDB",
		"CREATE TABLE words (n INT, word VARCHAR(20)) ENGINE=InnoDB",
		"CREATE TABLE keyed (id BIGINT UNSIGNED PRIMARY KEY, login VARCHAR(100)) ENGINE=InnoDB",
		// With an open cursor the answers after it have its flag, although the client has no
		// cursor.
		"CREATE PROCEDURE two(IN n INT, OUT twice INT) BEGIN DECLARE c CURSOR FOR SELECT id FROM photos; OPEN c; SELECT n;" +
			" SELECT id, title FROM photos ORDER BY id LIMIT 2; SET twice = 2 * n; END",
	}
}

// TestThroughTheProxyAsDirectly runs every client and tool directly and through the proxy. Clients
// use each of their logins.
func TestThroughTheProxyAsDirectly(t *testing.T) {
	p := start(t)
	t.Run("binlog", func(t *testing.T) { binlogIsReadAndFollowed(t, p) }) // while it is small
	infile := filepath.Join(p.dir, "words.txt")
	var lines strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&lines, "%d\tword %d\n", i, i)
	}
	if err := os.WriteFile(infile, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.find(t)
			c.test(t, p, target{schema: fmt.Sprintf("client%d", i), infile: infile})
		})
	}
	for i, k := range keyDrivers {
		t.Run("keys of "+k.name, func(t *testing.T) {
			t.Parallel()
			driverTest(t, p, k, fmt.Sprintf("keys%d", i))
		})
	}
	for i, k := range orms {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			ormTest(t, p, k, fmt.Sprintf("orm%d", i))
		})
	}
	for name, try := range map[string]func(*testing.T, *place){
		"ctrl-c": ctrlCEndsTheStatement, "dump": dumpIsTheSameAndReloads, "load": localFilesLoad, "slap": slapRuns, "sysbench": sysbenchRuns, "admin": adminCommandsWork,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			try(t, p)
		})
	}
}

// test runs a client directly, through the proxy, and through the proxy with each further login.
// The answers must not depend on the login.
func (c client) test(t *testing.T, p *place, to target) {
	to.big, to.login, to.user = bigValue, "password", user
	var direct transcript
	unable := c.unable != nil && c.unable(p) != ""
	if unable {
		t.Logf("%s is not compared with a direct connection: %s", c.name, c.unable(p))
	} else {
		var err error
		if direct, err = c.transcript(t, to, p, p.server.Addr()); err != nil {
			t.Fatalf("direct: %v", err)
		}
		f := make(faults)
		direct.check(f, to)
		for step, what := range f {
			t.Errorf("direct: %s: %s", step, what)
		}
	}
	to.sequence = sequence
	for i, login := range append([]string{"password"}, c.logins...) {
		t.Run(login, func(t *testing.T) {
			to := to
			to.login = login
			if login == "zstd" && p.server.Flavour() == mysqld.MariaDB {
				t.Skip("the proxy offers what the server does, and MariaDB has no Zstandard")
			}
			if way, relayed := strings.CutPrefix(login, "relayed "); relayed {
				if unable {
					t.Skip("the server checks this login: " + c.unable(p))
				}
				to.login, to.user = way, relayedUser
				if way, full := strings.CutPrefix(way, "full "); full {
					if p.server.Flavour() == mysqld.MariaDB {
						t.Skip("MariaDB has no caching_sha2_password here")
					}
					to.login, to.user = way, p.stranger(t, fmt.Sprintf("%s_%d", to.schema, i))
				}
			}
			addr, wire := p.proxy, wiretap{}
			if i > 0 {
				to.big = smallerBig
				wire = tap(t, p.proxy)
				addr = wire.addr
			}
			got, err := c.transcript(t, to, p, addr)
			f := make(faults)
			if err != nil {
				f.add("connect", "%v", err)
			}
			got.check(f, to)
			got.checkNumbers(f)
			if direct != nil {
				got.compare(f, direct, to.user)
			}
			// Zstandard does not compress the first of several equal texts.
			if i > 0 && to.login != "zstd" && wire.seen() != (to.login == "password" || to.login == "native") {
				f.add("connect", "the big value was seen on the wire: %t", wire.seen())
			}
			for step, what := range f {
				t.Errorf("%s: %s", step, what)
			}
			writeMatrix(t, p, got, f, c.name, login)
		})
	}
}

// transcript runs the client at an address and reads its transcript, as far as it came.
func (c client) transcript(t *testing.T, to target, p *place, addr string) (transcript, error) {
	t.Helper()
	p.server.Exec(t, tables(to.schema)...)
	var err error
	if to.host, to.port, err = net.SplitHostPort(addr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	out, failed := c.run(ctx, t, p, to)
	got, err := parse(out)
	return got, errors.Join(failed, err)
}

// writeMatrix stores the results of a run for docs/compatibility-tables.md.
func writeMatrix(t *testing.T, p *place, got transcript, f faults, name, login string) {
	t.Helper()
	if matrix.Out() == "" {
		return
	}
	c := matrix.Client{
		Client: name, Server: matrix.Server(string(p.server.Flavour()), p.server.Version()), Login: login, Steps: make(map[string]string),
	}
	c.Version, _ = got.value("client").(string)
	for _, step := range got.steps() {
		c.Steps[step] = "ok"
	}
	maps.Copy(c.Steps, f)
	if err := c.Write(matrix.Out()); err != nil {
		t.Fatal(err)
	}
}
