package main

import (
	"database/sql"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"seqproxy/test/mysqltest"
)

// Messages of go-sql-driver about broken connections must not appear among the log lines. begin
// checks that for every program that a test runs. This test breaks its connections.
func TestTheDriverPrintsNothing(t *testing.T) {
	server := mysqltest.Start(t)
	p := begin(t, "-config", write(t, "seqproxy.toml", fmt.Sprintf(`
listen = "127.0.0.1:0"
http.listen = ""
admin.listen = ""
admin_users = ["root"]
[[user]]
name = "root"
[[sequence.server]]
address = %q
user = "root"
`, server.Addr())))
	db, err := sql.Open("mysql", "root@tcp("+p.address()+")/")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("CREATE SEQUENCE photos CACHE 1"); err != nil {
		t.Fatal(err)
	}
	root := server.DB(t, "")
	for range 3 {
		next := func() error {
			var n uint64
			return db.QueryRow("SELECT NEXTVAL('photos')").Scan(&n)
		}
		if err := next(); err != nil {
			t.Fatal(err)
		}
		// One of its connections is closed while idle, and one by the server.
		var id uint64
		rows, err := root.Query("SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND command = 'Sleep'")
		if err != nil {
			t.Fatal(err)
		}
		var ids []uint64
		for rows.Next() {
			if err := rows.Scan(&id); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		for _, id := range ids {
			_, _ = root.Exec(fmt.Sprintf("KILL %d", id)) // it may have ended
		}
		for range 3 {
			if err := next(); err != nil {
				t.Logf("after a KILL: %v", err)
			}
		}
	}
	p.signal(syscall.SIGTERM)
	p.end(0)
}

// Every use of the driver sets a logger.
func TestEveryUseOfTheDriverNamesALogger(t *testing.T) {
	found := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || d.Name() == "mysqltest" || d.Name() == "bench" || d.Name() == "trip") {
			if err == nil {
				err = fs.SkipDir
			}
			return err
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text := string(b)
		if strings.Contains(text, `sql.Open("mysql"`) {
			t.Errorf("%s opens the driver by a DSN, which has no logger", path)
		}
		for _, name := range []string{"mysql", "driver"} {
			if n := strings.Count(text, name+".NewConfig()"); n > 0 {
				found += n
				if strings.Count(text, "&"+name+".NopLogger{}") < n {
					t.Errorf("%s: of %d configurations of the driver some have no logger", path, n)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 4 {
		t.Errorf("found %d configurations of the driver, want more: the test does not see them", found)
	}
}
