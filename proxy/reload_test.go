package proxy_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"seqproxy/backend"
	"seqproxy/proxy"
	"seqproxy/test/mysqltest"
)

// moved is a proxy whose one shard is about to move to the node of the second server, which has its
// schema, too.
func moved(t *testing.T) (e *env, move func()) {
	e = newEnv(t, setup{
		Shards: 2, Backend: func(o *backend.Options) { o.Shards = o.Shards[:1] },
		Proxy: func(o *proxy.Options) { o.MaxStatement = 64 << 10 },
	})
	e.Servers[1].Exec(t, "CREATE DATABASE `"+e.Schemas[0]+"`")
	t.Cleanup(func() { e.Servers[1].Exec(t, "DROP DATABASE `"+e.Schemas[0]+"`") })
	return e, func() {
		t.Helper()
		e.Reload(t, func(b *backend.Options, _ *proxy.Options) { b.Shards[0].Nodes = []string{e.Servers[1].Addr()} })
	}
}

func TestSessionsGoToANewNodeWithWhatTheyHaveSet(t *testing.T) {
	e, move := moved(t)
	c, unused := e.Conn(t, e.Schemas[0], nil), e.Conn(t, "", nil)
	exec(t, c, "SET @a = 'ä', sql_mode = 'ANSI_QUOTES'", "SET NAMES latin1", "SELECT LAST_INSERT_ID(77)")
	e.awaitConnections(e.Servers[1], 0)
	move()
	const read = "SELECT CONCAT_WS(' ', @@port, HEX(@a), @@sql_mode, @@character_set_client, DATABASE())"
	if got, want := value(t, c, read), e.port(1)+" C3A4 ANSI_QUOTES latin1 "+e.Schemas[0]; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := value(t, c, "SELECT LAST_INSERT_ID()"); got != "77" {
		t.Errorf("LAST_INSERT_ID(): got %s, want 77", got)
	}
	for what, c := range map[string]*sql.Conn{"without a schema": unused, "new": e.Conn(t, e.Schemas[0], nil)} {
		if got := value(t, c, "SELECT @@port"); got != e.port(1) {
			t.Errorf("a session %s: got port %s, want %s", what, got, e.port(1))
		}
	}
	e.checkGone(e.Servers[0])
}

// checkGone fails the test if sessions still have a connection to a server. The test must not have
// used a sequence there.
func (e *env) checkGone(server *mysqltest.Server) {
	e.t.Helper()
	pool := server.DB(e.t, "")
	var sessions sql.NullString
	if !eventually(e.t, "no session on "+server.Addr(), func() bool {
		if err := pool.QueryRow("SELECT GROUP_CONCAT(id, ' ', COALESCE(db, ''), ' ', command, ' ', COALESCE(info, '')) FROM information_schema.processlist "+
			"WHERE user = ? AND (db IS NULL OR db <> ?)", e.User, e.SequenceSchema).Scan(&sessions); err != nil {
			e.t.Fatal(err)
		}
		return !sessions.Valid
	}) {
		e.t.Errorf("sessions remain: %s", sessions.String)
	}
}

func TestASessionStaysOnItsNodeWhileSomethingKeepsItThere(t *testing.T) {
	e, move := moved(t)
	e.Servers[0].Exec(t, "CREATE TABLE `"+e.Schemas[0]+"`.t (a INT)", "INSERT INTO `"+e.Schemas[0]+"`.t VALUES (1), (2)", "CREATE TABLE `"+e.Schemas[0]+"`.u SELECT * FROM `"+e.Schemas[0]+"`.t")
	type pinned struct {
		what, pin, unpin string
		c                *sql.Conn
	}
	list := []*pinned{
		{what: "a transaction", pin: "BEGIN", unpin: "COMMIT"},
		{what: "a temporary table", pin: "CREATE TEMPORARY TABLE tmp (a INT)"},
		{what: "SET TRANSACTION", pin: "SET TRANSACTION READ ONLY"},
		{what: "autocommit", pin: "SET autocommit = 0", unpin: "ROLLBACK"},
	}
	for _, p := range list {
		p.c = e.Conn(t, e.Schemas[0], nil)
		exec(t, p.c, p.pin)
		if p.what == "autocommit" {
			exec(t, p.c, "INSERT INTO t VALUES (3)")
		}
	}
	prepared := e.Conn(t, e.Schemas[0], nil)
	statement, err := prepared.PrepareContext(context.Background(), "SELECT @@port")
	if err != nil {
		t.Fatal(err)
	}
	counting := e.Conn(t, e.Schemas[0], nil)
	exec(t, counting, "UPDATE u SET a = a + 1")
	move()
	for _, p := range list {
		if p.what == "SET TRANSACTION" {
			exec(t, p.c, "BEGIN")
			p.unpin = "COMMIT"
		}
		if got := value(t, p.c, "SELECT @@port"); got != e.port(0) {
			t.Errorf("%s: got port %s, want the old one, %s", p.what, got, e.port(0))
		}
		if p.unpin == "" {
			continue
		}
		exec(t, p.c, p.unpin)
		if got := value(t, p.c, "SELECT @@port"); got != e.port(1) {
			t.Errorf("%s is over: got port %s, want the new one, %s", p.what, got, e.port(1))
		}
	}
	for range 2 {
		var got string
		if err := statement.QueryRow().Scan(&got); err != nil || got != e.port(0) {
			t.Errorf("a prepared statement: got port %s, %v, want the old one, %s", got, err, e.port(0))
		}
		if got := value(t, prepared, "SELECT @@port"); got != e.port(0) {
			t.Errorf("another statement: got port %s, want the old one, too, %s", got, e.port(0))
		}
	}
	var kept []string
	for _, line := range e.Logs.FilterMessage("session kept where it is").All() {
		kept = append(kept, fmt.Sprint(line.ContextMap()["pin"]))
	}
	if want := []string{"temporary_table", "prepared_statement"}; !slices.Equal(kept, want) {
		t.Errorf("the log says that sessions are kept by %q, want each once, %q", kept, want)
	}
	if err := statement.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the first may cross with the end of the connection
		value(t, prepared, "SELECT 1")
	}
	if got := value(t, prepared, "SELECT @@port"); got != e.port(1) {
		t.Errorf("the prepared statement is closed: got port %s, want the new one, %s", got, e.port(1))
	}
	if got := value(t, counting, "SELECT ROW_COUNT()"); got != "2" {
		t.Errorf("ROW_COUNT(): got %s, want 2, of the old node", got)
	}
	if got := value(t, counting, "SELECT @@port"); got != e.port(1) {
		t.Errorf("after ROW_COUNT(): got port %s, want the new one, %s", got, e.port(1))
	}
}

// Neither a statement that the proxy answers itself, nor an idle connection to another shard, keeps
// a session where it is.
func TestWhatASessionDoesNotNeedKeepsItNowhere(t *testing.T) {
	t.Run("a prepared statement of the proxy's own", func(t *testing.T) {
		e, move := moved(t)
		c := e.Conn(t, e.Schemas[0], nil)
		exec(t, c, "CREATE SEQUENCE photos")
		statement, err := c.PrepareContext(t.Context(), "SELECT NEXTVAL('photos')")
		if err != nil {
			t.Fatal(err)
		}
		defer statement.Close()
		move()
		if got := value(t, c, "SELECT @@port"); got != e.port(1) {
			t.Errorf("got port %s, want the new one, %s", got, e.port(1))
		}
		var got string
		if err := statement.QueryRow().Scan(&got); err != nil || got != "1" {
			t.Errorf("the statement: got %s, %v, want 1", got, err)
		}
	})
	t.Run("an idle connection", func(t *testing.T) {
		e := newEnv(t, setup{Shards: 2})
		e.Servers[0].Exec(t, "CREATE DATABASE `"+e.Schemas[1]+"`")
		t.Cleanup(func() { e.Servers[0].Exec(t, "DROP DATABASE `"+e.Schemas[1]+"`") })
		c := e.Conn(t, e.Schemas[1], nil)
		exec(t, c, "DO 1", "USE "+e.Schemas[0])
		statement, err := c.PrepareContext(t.Context(), "SELECT 1")
		if err != nil {
			t.Fatal(err)
		}
		defer statement.Close()
		e.Reload(t, func(b *backend.Options, _ *proxy.Options) { b.Shards[1].Nodes = []string{e.Servers[0].Addr()} })
		exec(t, c, "DO 1", "USE "+e.Schemas[1])
		if got := value(t, c, "SELECT @@port"); got != e.port(0) {
			t.Errorf("got port %s, want the new one, %s", got, e.port(0))
		}
	})
}

func TestASessionThatCannotMoveStaysAndTriesAgain(t *testing.T) {
	e, move := moved(t)
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "SET @a = 1")
	e.Servers[1].Exec(t, "DROP DATABASE `"+e.Schemas[0]+"`")
	move()
	for range 2 {
		if got := value(t, c, "SELECT @@port + @a - 1"); got != e.port(0) {
			t.Fatalf("got port %s, want the old one, %s", got, e.port(0))
		}
	}
	if got := e.Logs.FilterMessage("session not moved").Len(); got != 1 {
		t.Errorf("logged %d times that it could not move, want once", got)
	}
	e.Servers[1].Exec(t, "CREATE DATABASE `"+e.Schemas[0]+"`")
	eventually(t, "the session moves", func() bool { return value(t, c, "SELECT @@port + @a - 1") == e.port(1) })
}

func TestASchemaGoesToAnotherShard(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	both := e.Schemas[0]
	e.Servers[1].Exec(t, "CREATE DATABASE `"+both+"`")
	t.Cleanup(func() { e.Servers[1].Exec(t, "DROP DATABASE `"+both+"`") })
	there, elsewhere := e.Conn(t, both, nil), e.Conn(t, "mysql", nil)
	for _, c := range []*sql.Conn{there, elsewhere} {
		if got := value(t, c, "SELECT @@port"); got != e.port(0) {
			t.Fatalf("got port %s, want %s", got, e.port(0))
		}
	}
	e.Reload(t, func(b *backend.Options, _ *proxy.Options) {
		b.Shards[0].Schemas, b.Shards[1].Schemas = nil, []string{both, e.Schemas[1]}
	})
	if got := value(t, there, "SELECT @@port"); got != e.port(1) {
		t.Errorf("got port %s, want that of the new owner, %s", got, e.port(1))
	}
	if got := value(t, elsewhere, "SELECT @@port"); got != e.port(0) {
		t.Errorf("another schema: got port %s, want the same as before, %s", got, e.port(0))
	}
	// The default shard gets the schemas of a shard that is gone.
	e.Reload(t, func(b *backend.Options, _ *proxy.Options) { b.Shards = b.Shards[:1] })
	if got := value(t, there, "SELECT @@port"); got != e.port(0) {
		t.Errorf("the shard is gone: got port %s, want the default shard's, %s", got, e.port(0))
	}
}

func TestAReloadIsRefusedWhoseNewNodeDoesNotAnswer(t *testing.T) {
	e := newEnv(t, setup{})
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	c := e.Conn(t, e.Schemas[0], nil)
	err = e.TryReload(func(b *backend.Options, o *proxy.Options) {
		b.Shards[0].Nodes, b.ConnectTimeout = []string{silent.Addr().String()}, time.Second
		o.Users = nil
	})
	var unreachable *backend.UnreachableError
	if !errors.As(err, &unreachable) || unreachable.Node != silent.Addr().String() {
		t.Errorf("got %v, want that the new node cannot be used", err)
	}
	// The shard's own account must be able to log in.
	err = e.TryReload(func(b *backend.Options, _ *proxy.Options) {
		b.Shards[0].Login = &backend.Credentials{User: e.User, Password: "wrong"}
	})
	if err == nil || !strings.Contains(err.Error(), "1045") || !strings.Contains(err.Error(), "shard s0: node "+e.Servers[0].Addr()) {
		t.Errorf("got %v, want 1045 of the shard's node", err)
	}
	for what, c := range map[string]*sql.Conn{"old": c, "new": e.Conn(t, e.Schemas[0], nil)} {
		if got := value(t, c, "SELECT DATABASE()"); got != e.Schemas[0] {
			t.Errorf("a session of an %s client: got %s", what, got)
		}
	}
}

// The node of a shard changes while it is paused: statements that wait go to the new one.
func TestStatementsThatWaitedGoToTheNewNode(t *testing.T) {
	e, move := moved(t)
	without, inSchema, numbers := e.Conn(t, "", nil), e.Conn(t, e.Schemas[0], nil), e.Conn(t, e.Schemas[0], nil)
	exec(t, inSchema, "SET @a = 1")
	exec(t, numbers, "CREATE SEQUENCE photos", "DO 0")
	e.pause(t, "s0")
	waiting := map[string]func() string{
		"a session without a schema": func() string { return value(t, without, "SELECT @@port") },
		"a session":                  func() string { return value(t, inSchema, "SELECT @@port + @a - 1") },
		"a new session":              func() string { return value(t, e.Conn(t, e.Schemas[0], nil), "SELECT @@port") },
	}
	type outcome struct{ what, port string }
	outcomes := make(chan outcome, len(waiting))
	for what, work := range waiting {
		go func() { outcomes <- outcome{what, work()} }()
	}
	eventually(t, "three sessions wait", func() bool { return e.Proxy.PausedSessions() == 3 })
	move()
	if got := value(t, numbers, "SELECT NEXTVAL('photos')"); got != "1" { // this answer needs no server
		t.Errorf("a number: got %s, want 1", got)
	}
	if resumed, ok := e.Proxy.Resume("s0"); len(resumed) != 1 || !ok {
		t.Errorf("resumed %v, %v", resumed, ok)
	}
	for range waiting {
		if o := <-outcomes; o.port != e.port(1) {
			t.Errorf("%s: got port %s, want the new one, %s", o.what, o.port, e.port(1))
		}
	}
	if got := value(t, numbers, "SELECT @@port"); got != e.port(1) {
		t.Errorf("a session that did not wait: got port %s, want the new one, %s", got, e.port(1))
	}
}

// A shard that is taken out of the configuration while it is paused cannot be resumed by its name.
func TestWhatWaitsForAShardThatIsTakenAwayGoesOn(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	c, pinned := e.Conn(t, e.Schemas[1], nil), e.Conn(t, e.Schemas[1], nil)
	exec(t, pinned, "CREATE TEMPORARY TABLE tmp (a INT)")
	e.Servers[0].Exec(t, "CREATE DATABASE `"+e.Schemas[1]+"`")
	t.Cleanup(func() { e.Servers[0].Exec(t, "DROP DATABASE `"+e.Schemas[1]+"`") })
	e.pause(t, "s1")
	waited, stayed := make(chan string, 1), make(chan string, 1)
	go func() {
		defer close(waited)
		waited <- value(t, c, "SELECT @@port")
	}()
	go func() {
		defer close(stayed)
		stayed <- value(t, pinned, "SELECT @@port")
	}()
	e.awaitPausedSessions(t, 2)
	e.Reload(t, func(b *backend.Options, _ *proxy.Options) { b.Shards = b.Shards[:1] })
	if got := <-waited; got != e.port(0) {
		t.Errorf("a session: got port %s, want that of the shard which has its schema now, %s", got, e.port(0))
	}
	if got := <-stayed; got != e.port(1) {
		t.Errorf("a session with a temporary table: got port %s, want the one that has it, %s", got, e.port(1))
	}
}
