package proxy_test

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

// Where sequence servers divide numbers in steps, all that a session shows about the keys of
// further rows agrees.
func TestNumbersInStepsAreTheStepOfTheSession(t *testing.T) {
	second := mysqltest.Start(t)
	schema := second.Schema(t)
	e := newEnv(t, setup{
		Sequence: func(o *sequence.Options) {
			o.Interleave = sequence.InterleaveStep
			o.Servers = append(o.Servers, sequence.ServerOptions{Addr: second.Addr(), User: "root", Database: schema})
			o.CreateTable = true
		},
	})
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "CREATE SEQUENCE photos", "CREATE TABLE photos (id BIGINT UNSIGNED PRIMARY KEY, title VARCHAR(20))", "ALTER SEQUENCE photos OWNED BY photos.id")
	one := func(text string) (n uint64) {
		t.Helper()
		if err := c.QueryRowContext(t.Context(), text).Scan(&n); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return n
	}
	if got := one("SELECT @@auto_increment_increment"); got != 2 {
		t.Errorf("@@auto_increment_increment: got %d, want 2", got)
	}
	first := one("SELECT NEXTVAL('photos', 5)")
	if next := one("SELECT NEXTVAL('photos')"); next <= first+8 {
		t.Errorf("got five numbers from %d, and then %d, want it above them", first, next)
	}
	exec(t, c, "INSERT INTO photos (title) VALUES ('a'), ('b'), ('c')")
	id := one("SELECT LAST_INSERT_ID()")
	for i, title := range []string{"a", "b", "c"} {
		if got, want := one("SELECT id FROM photos WHERE title = '"+title+"'"), id+2*uint64(i); got != want {
			t.Errorf("row %s: got key %d, want %d", title, got, want)
		}
	}

	// The step stays with the session after a reset and a change of connections.
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	for range 3 {
		w.query("SET SESSION auto_increment_increment = 7")
		w.query("SELECT @@auto_increment_increment")
		if answer := w.do(protocol.ComResetConn, ""); answer[4] != 0 {
			t.Fatalf("reset: got %q", answer)
		}
		if got := w.rows("SELECT @@auto_increment_increment"); got[0] != "2" {
			t.Errorf("@@auto_increment_increment after COM_RESET_CONNECTION: got %s, want 2", got[0])
		}
	}
	w.query("SET SESSION auto_increment_increment = 7")
	if answer := w.change(e.User, e.Password, e.Schemas[0], "mysql_native_password"); answer[4] != 0 {
		t.Fatalf("change of the user: got %q", answer)
	}
	if got := w.rows("SELECT @@auto_increment_increment"); got[0] != "2" {
		t.Errorf("@@auto_increment_increment after COM_CHANGE_USER: got %s, want 2", got[0])
	}
}

// A session sees the step as on a server with that global value.
func TestTheStepOfASessionIsAsOnAServerThatHasIt(t *testing.T) {
	second := mysqltest.Start(t)
	second.Exec(t, "SET GLOBAL auto_increment_increment = 2")
	inSteps := func(o *sequence.Options) {
		schema := second.Schema(t)
		o.Interleave = sequence.InterleaveStep
		o.Servers = append(o.Servers, sequence.ServerOptions{Addr: second.Addr(), User: "root", Database: schema})
		o.CreateTable = true
	}
	e := newEnv(t, setup{Sequence: inSteps})
	// This makes the proxy read the plan.
	exec(t, e.Conn(t, e.Schemas[0], nil), "CREATE SEQUENCE photos")
	several := func(c *mysql.Config) { c.MultiStatements = true }
	there, err := mysql.ParseDSN(second.DSN(""))
	if err != nil {
		t.Fatal(err)
	}
	several(there)
	connector, err := mysql.NewConnector(there)
	if err != nil {
		t.Fatal(err)
	}
	pool := sql.OpenDB(connector)
	t.Cleanup(func() { _ = pool.Close() })
	proxied, direct := e.Conn(t, e.Schemas[0], several), one(t, pool)
	look := func(c *sql.Conn) (all []string) {
		t.Helper()
		for _, text := range []string{
			"SELECT 'v', @@auto_increment_increment", "SELECT 'v', @@session.auto_increment_increment + 0", "SHOW VARIABLES LIKE 'auto_increment_increment'",
			"SHOW SESSION VARIABLES WHERE Variable_name = 'auto_increment_increment'",
		} {
			var name, step string
			if err := c.QueryRowContext(t.Context(), text).Scan(&name, &step); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			all = append(all, step)
		}
		return all
	}
	for _, step := range []string{
		"",
		"SET @@auto_increment_increment = 5",
		"SET SESSION sql_mode = 'STRICT_ALL_TABLES'",
		"SET @@auto_increment_increment = DEFAULT",
		"SET SESSION auto_increment_increment = 9, sql_mode = DEFAULT",
		"SET @a = 1, SESSION auto_increment_increment = DEFAULT, auto_increment_offset = 1",
		"SET @@session.auto_increment_increment = 4",
		"prepared SET @@session.auto_increment_increment = DEFAULT",
		"SET @@local.auto_increment_increment = 3",
		"SET NAMES latin1",
		"SET auto_increment_increment = DEFAULT; SET @a = 2",
		"SET @a = 3; SET @@session.auto_increment_increment = 6, @a = 4",
		"SET @a = 3; SET @a = 5, LOCAL auto_increment_increment = DEFAULT",
		"SET auto_increment_increment = DEFAULT; SET auto_increment_increment = 8;",
		"SET @a = 7; SET auto_increment_offset = DEFAULT",
	} {
		for _, c := range []*sql.Conn{proxied, direct} {
			text, prepared := strings.CutPrefix(step, "prepared ")
			switch {
			case step == "":
			case prepared:
				s, err := c.PrepareContext(t.Context(), text)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := s.ExecContext(t.Context()); err != nil {
					t.Fatal(err)
				}
			default:
				exec(t, c, step)
			}
		}
		if got, want := look(proxied), look(direct); !slices.Equal(got, want) {
			t.Errorf("after %q: got %q, want %q as on a server whose global value is 2", step, got, want)
		}
	}

	keysOnly := newEnv(t, setup{Shards: noShards, Sequence: inSteps})
	c := keysOnly.Conn(t, "", nil)
	exec(t, c, "CREATE SEQUENCE photos")
	if got := value(t, c, "SELECT @@session.auto_increment_increment"); got != "2" {
		t.Errorf("where only keys are served: got %s, want 2", got)
	}
}

// The step is set again after the client's answer. If the server refuses it, its error must not be
// taken for the answer to the client's next command.
func TestAStepThatCannotBeSetAgainEndsTheSession(t *testing.T) {
	second := mysqltest.Start(t)
	const most = 8
	limited := func(n int) string { return fmt.Sprintf("limited_to_%d", n) }
	e := newEnv(t, setup{
		Servers: []*mysqltest.Server{mysqltest.Start(t)},
		Sequence: func(o *sequence.Options) {
			schema := second.Schema(t)
			o.Interleave = sequence.InterleaveStep
			o.Servers = append(o.Servers, sequence.ServerOptions{Addr: second.Addr(), User: "root", Database: schema})
			o.CreateTable = true
		},
		Proxy: func(o *proxy.Options) {
			for n := 1; n <= most; n++ {
				o.Users = append(o.Users, proxy.User{Name: limited(n), Password: "limited"})
			}
		},
	})
	// This makes the proxy read the plan.
	exec(t, e.Conn(t, e.Schemas[0], nil), "CREATE SEQUENCE photos")
	for name, reset := range map[string][]byte{
		"a SET": command(protocol.ComQuery, "SET SESSION auto_increment_increment = DEFAULT"),
		"reset": command(protocol.ComResetConn, ""),
	} {
		ended := 0
		for n := 1; n <= most; n++ { // the proxy queries other values before
			user, password := limited(n), "limited"
			e.Servers[0].Exec(t, "DROP USER IF EXISTS "+user, fmt.Sprintf("CREATE USER %s IDENTIFIED BY '%s' WITH MAX_QUERIES_PER_HOUR %d", user, password, n))
			w := e.Wire(t, e.Addr(), wireLogin{User: &user, Password: &password, Capabilities: withoutTracking, Packing: notPacked})
			if n > 1 { // one that has not used the server has no step to set
				w.query("DO 1")
			}
			w.send(packet(reset))
			answer := w.receive(protocol.ShapeOne, nil)
			_, err := w.Write(packet(command(protocol.ComPing, "")))
			var ping []byte
			if err == nil {
				ping, err = w.tryReceive(protocol.ShapeOne, nil)
			}
			switch {
			case err != nil:
				if ended++; answer[protocol.HeaderSize] != 0 || len(ping) > 0 {
					t.Errorf("%s, at most %d statements: got %q and %q before the end, want one OK", name, n, answer, ping)
				}
			case ping[protocol.HeaderSize] != 0:
				t.Errorf("%s, at most %d statements: got %q, and the ping is answered with %q", name, n, answer, ping)
			}
			w.Close()
		}
		want := 1
		if name == "reset" && e.Servers[0].IsMariaDB() {
			want = 0 // it counts anew after a reset
		}
		if ended != want {
			t.Errorf("%s: %d sessions have ended, want %d: the one whose step could not be set again", name, ended, want)
		}
	}
}
