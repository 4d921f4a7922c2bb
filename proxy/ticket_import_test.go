package proxy_test

import (
	"context"
	"database/sql"
	"fmt"
	osexec "os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seqproxy/test/mysqltest"
)

// importing turns ticket tables into sequences under running applications: `keys`.<table> becomes
// the sequence of that name.
type importing struct {
	t      *testing.T
	server *mysqltest.Server
	binary string
	config string
	given  map[string]map[int64]bool // by table
}

func (x *importing) command(table string) *osexec.Cmd {
	return osexec.CommandContext(x.t.Context(), x.binary, "import", "-config", x.config, "-from", "ticket", "-schema", "keys", "-table", table)
}

// killed begins an import and kills it after it has raised the table's counter, before it makes the
// sequence.
func (x *importing) killed(table string) {
	x.t.Helper()
	c, err := x.server.DB(x.t, "keys").Conn(x.t.Context())
	if err != nil {
		x.t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // the test is over
	exec(x.t, c, "LOCK TABLES `sequence` READ")
	cmd := x.command(table)
	if err := cmd.Start(); err != nil {
		x.t.Fatal(err)
	}
	watch := x.server.DB(x.t, "")
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		var waiting int
		if err := watch.QueryRow("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'INSERT INTO `keys`.`sequence`%'").Scan(&waiting); err != nil {
			x.t.Fatal(err)
		}
		if waiting > 0 {
			break
		}
		if time.Now().After(end) {
			x.t.Fatalf("the import of %s does not reach the making of the sequence", table)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		x.t.Fatal(err)
	}
	_ = cmd.Wait()
	exec(x.t, c, "UNLOCK TABLES")
	if n := value(x.t, c, "SELECT COUNT(*) FROM `sequence` WHERE name = ?", table); n != "0" {
		x.t.Fatalf("%s exists after an import that was killed before it", table)
	}
}

// take has each application take numbers at its addresses while f runs.
func (x *importing) take(phase string, apps []ticketApplication, addrs []string, f func()) map[string][]int64 {
	x.t.Helper()
	const perCopy = 30
	var wg sync.WaitGroup
	var mu sync.Mutex
	var proxied atomic.Int64
	all := make(map[string][]int64)
	for _, app := range apps {
		for _, addr := range addrs {
			if strings.HasPrefix(app.name, "NEXTVAL") && addr == x.server.Addr() {
				continue
			}
			wg.Go(func() {
				numbers, err := app.run(addr, perCopy, addr != x.server.Addr(), &proxied)
				if err != nil {
					x.t.Errorf("%s: %s at %s: %v", phase, app.name, addr, err)
				}
				if !slices.IsSorted(numbers) {
					x.t.Errorf("%s: %s at %s: numbers do not rise: %v", phase, app.name, addr, numbers)
				}
				mu.Lock()
				defer mu.Unlock()
				all[app.counter] = append(all[app.counter], numbers...)
			})
		}
	}
	if f != nil {
		f()
	}
	wg.Wait()
	for counter, numbers := range all {
		if x.given[counter] == nil {
			x.given[counter] = make(map[int64]bool)
		}
		for _, n := range numbers {
			if n <= 0 || x.given[counter][n] {
				x.t.Errorf("%s: %s gave %d, which is no number or was given before", phase, counter, n)
			}
			x.given[counter][n] = true
		}
	}
	return all
}

// TestTicketTablesAreImportedUnderTheirApplications: unchanged applications take numbers all the
// time, directly and through two proxies that serve the tables. Imports are killed and then
// finished. Then others use NEXTVAL, while a proxy is killed.
func TestTicketTablesAreImportedUnderTheirApplications(t *testing.T) {
	server := mysqltest.StartUnsynced(t)
	server.Exec(t, "CREATE DATABASE `keys`", "USE `keys`",
		"CREATE TABLE `sequence` (`name` varchar(50) NOT NULL, `id` bigint(20) unsigned NOT NULL DEFAULT '0', PRIMARY KEY (`name`)) ENGINE=InnoDB")
	listed := "[[shard]]\nname = \"main\"\n[[shard.node]]\naddress = \"" + server.Addr() + "\"\n"
	tables := []string{"tickets64InnoDB", "id_tempInnoDB", "ids_photosMyISAM"}
	for i, engine := range []string{"InnoDB", "InnoDB", "MyISAM"} {
		server.Exec(t, "USE `keys`", fmt.Sprintf(ticketSQL[i], engine))
		listed += "[[ticket]]\ntable = \"keys." + tables[i] + "\"\n"
	}
	apps := []ticketApplication{
		{"Flickr", tables[0], inOneText("REPLACE INTO tickets64InnoDB (stub) VALUES ('a')")},
		{"Flickr, another stub", tables[0], byInsertID("REPLACE INTO tickets64InnoDB (stub) VALUES ('b')")},
		{"Flickr, prepared", tables[0], byInsertID("REPLACE INTO tickets64InnoDB (stub) VALUES (?)", "a")},
		{"id_temp", tables[1], byFunction("REPLACE INTO id_tempInnoDB (table_name) VALUE(\"photos\")")},
		{"a table of its own", tables[2], byInsertID("INSERT INTO ids_photosMyISAM VALUES (NULL)")},
	}
	x := &importing{t: t, server: server, binary: mysqltest.Program(t), given: make(map[string]map[int64]bool)}
	one := startProxyProcess(t, x.binary, server, "one", listed)
	two := startProxyProcess(t, x.binary, server, "two", listed)
	x.config = one.config
	everywhere := []string{server.Addr(), one.addr, two.addr}

	x.take("before", apps, everywhere, nil)
	x.take("imports are killed", apps, everywhere, func() {
		for _, table := range tables {
			x.killed(table)
		}
	})
	x.take("imports come to their end", apps, everywhere, func() {
		for _, table := range tables {
			if out, err := x.command(table).CombinedOutput(); err != nil || !strings.Contains(string(out), "1 created") {
				t.Errorf("import of %s: %v\n%s", table, err, out)
			}
		}
	})
	for _, table := range tables {
		apps = append(apps, ticketApplication{"NEXTVAL", table, func(ctx context.Context, c *sql.Conn) (id int64, err error) {
			err = c.QueryRowContext(ctx, "SELECT NEXTVAL('"+table+"')").Scan(&id)
			return id, err
		}})
	}
	x.take("both ways", apps, everywhere, func() {
		one.kill()
		if err := one.start(); err != nil {
			t.Error(err)
		}
	})
	after := x.take("tables alone", apps[:5], []string{server.Addr()}, nil)
	for _, table := range tables {
		var end int64
		if err := server.DB(t, "keys").QueryRow("SELECT maximum FROM sequence_options WHERE name = ?", table).Scan(&end); err != nil {
			t.Fatal(err)
		}
		if got := slices.Min(after[table]); got <= end {
			t.Errorf("%s gives %d, want numbers above the end of its sequence, %d", table, got, end)
		}
		if out, err := x.command(table).CombinedOutput(); err != nil || !strings.Contains(string(out), "1 there already") {
			t.Errorf("import of %s again: %v\n%s", table, err, out)
		}
	}
}
