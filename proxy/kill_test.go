package proxy_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

// ids are numbers that differ between two connections.
var ids = regexp.MustCompile(`\d{2,}`)

// hold takes the user lock that statements wait for. They do not SLEEP, because MariaDB may miss a
// KILL at its beginning.
func (e *env) hold(t *testing.T, i int) {
	t.Helper()
	exec(t, e.DirectConn(t, i, "", nil), "DO GET_LOCK('held', 0)")
}

// waiter is a client whose statement runs on the first server.
func (e *env) waiter(t *testing.T, addr string, statement string, schema string) *wire {
	t.Helper()
	w := e.Wire(t, addr, wireLogin{Schema: schema})
	w.send(packet(command(protocol.ComQuery, statement)))
	e.awaitStatement(e.Servers[0], statement)
	return w
}

// killsAsDirect compares a kill through the proxy with a direct one, by what the killer and the
// killed session get. The killed session's statement waits for the lock of hold.
func (e *env) killsAsDirect(t *testing.T, kill func(killer *wire, id string) []byte, survives bool) {
	t.Helper()
	var answers, ends [2]string
	for i, addr := range []string{e.Servers[0].Addr(), e.Addr()} {
		statement := fmt.Sprintf("SELECT GET_LOCK('held', 100) /* %d */", i)
		target := e.waiter(t, addr, statement, e.Schemas[0])
		killer := e.Wire(t, addr, wireLogin{Schema: e.Schemas[0]})
		answers[i] = ids.ReplaceAllString(string(kill(killer, target.id())), "n")
		if survives {
			ends[i] = ids.ReplaceAllString(string(target.receive(protocol.ShapeResult, nil)), "n")
			target.ping("KILL QUERY")
		} else {
			ends[i] = string(target.ended())
		}
		e.awaitNoStatement(t, e.Servers[0], statement)
	}
	if answers[1] != answers[0] {
		t.Errorf("the killer got %q, want %q as direct", answers[1], answers[0])
	}
	if ends[1] != ends[0] {
		t.Errorf("the killed got %q, want %q as direct", ends[1], ends[0])
	}
}

func (w *wire) id() string { return strconv.FormatUint(uint64(w.hello.Greeting.ConnectionID), 10) }

// Checklist 33.
func TestKillEndsWhatADirectOneEnds(t *testing.T) {
	e := newEnv(t, setup{})
	e.hold(t, 0)
	mariaDB := e.Servers[0].IsMariaDB()
	for _, c := range []struct {
		name     string
		kill     func(killer *wire, id string) []byte
		mariaDB  bool
		survives bool
	}{
		{name: "KILL", kill: func(w *wire, id string) []byte { return w.query("KILL " + id) }},
		{name: "KILL CONNECTION", kill: func(w *wire, id string) []byte { return w.query("kill connection " + id + " ;") }},
		{name: "quoted", kill: func(w *wire, id string) []byte { return w.query("KILL '" + id + "'") }},
		{name: "KILL QUERY", survives: true, kill: func(w *wire, id string) []byte { return w.query("KILL QUERY " + id) }},
		{name: "a variable", kill: func(w *wire, id string) []byte { w.query("SET @x = " + id); return w.query("KILL @x") }},
		{name: "a variable of text", survives: true, kill: func(w *wire, id string) []byte {
			w.query("SET @x = '" + id + "'")
			return w.query("KILL QUERY @x")
		}},
		{name: "prepared", survives: true, kill: func(w *wire, id string) []byte {
			statementID := string(w.do(protocol.ComStmtPrepare, "KILL QUERY "+id)[5:9])
			return w.do(protocol.ComStmtExecute, statementID+"\x00\x01\x00\x00\x00")
		}},
		{name: "COM_PROCESS_KILL", mariaDB: true, kill: func(w *wire, id string) []byte {
			n, _ := strconv.ParseUint(id, 10, 32)
			return w.do(protocol.ComProcessKill, string(binary.LittleEndian.AppendUint32(nil, uint32(n))))
		}},
		{name: "HARD", mariaDB: true, kill: func(w *wire, id string) []byte { return w.query("KILL HARD " + id) }},
		{name: "SOFT", mariaDB: true, survives: true, kill: func(w *wire, id string) []byte { return w.query("KILL SOFT QUERY " + id) }},
	} {
		if c.mariaDB && !mariaDB {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			e.killsAsDirect(t, c.kill, c.survives)
		})
	}
}

// Checklist 33.
func TestAKillWithAParameterFindsItsSession(t *testing.T) {
	e := newEnv(t, setup{})
	if !e.Servers[0].IsMariaDB() {
		t.Skip("this server refuses KILL ?")
	}
	e.hold(t, 0)
	target := e.Conn(t, e.Schemas[0], nil)
	for _, bind := range []func(id uint64) any{
		func(id uint64) any { return id },
		func(id uint64) any { return int64(id) },
		func(id uint64) any { return float64(id) },
		func(id uint64) any { return strconv.FormatUint(id, 10) },
		func(id uint64) any { return []byte(strconv.FormatUint(id, 10)) },
	} {
		id, err := strconv.ParseUint(value(t, target, "SELECT CONNECTION_ID()"), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		failed := make(chan error, 1)
		go func() {
			_, err := target.ExecContext(context.Background(), "SELECT GET_LOCK('held', 103)")
			failed <- err
		}()
		e.awaitStatement(e.Servers[0], "SELECT GET_LOCK('held', 103)")
		killer := e.Conn(t, "", nil)
		st, err := killer.PrepareContext(context.Background(), "KILL QUERY ?")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := st.Exec(bind(id)); err != nil {
			t.Errorf("%T: %v", bind(id), err)
		}
		if err := <-failed; err != nil { // a GET_LOCK that is killed is NULL
			t.Errorf("%T: the killed statement: %v", bind(id), err)
		}
		_, err = st.Exec(int64(2_000_000_000)) // an id of a server
		checkError(t, "a server's id", err, 1094, "2000000000")
		_, err = st.Exec(nil)
		checkError(t, "NULL", err, 1094)
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestKillOfOneselfIsAnsweredAsDirect(t *testing.T) {
	e := newEnv(t, setup{})
	for _, sql := range []string{"KILL CONNECTION_ID()", "KILL QUERY CONNECTION_ID()", "KILL %s", "KILL QUERY %s", "KILL QUERY CONNECTION_ID() + 0"} {
		for _, schema := range []string{"", e.Schemas[0]} {
			// Without and with a connection to a server.
			var answers [2][]byte
			for i, addr := range []string{e.Servers[0].Addr(), e.Addr()} {
				w := e.Wire(t, addr, wireLogin{Schema: schema})
				text := strings.ReplaceAll(sql, "%s", w.id())
				w.send(packet(command(protocol.ComQuery, text)))
				if strings.Contains(sql, "QUERY") {
					answers[i] = w.receive(protocol.ShapeResult, nil)
					w.ping(text)
				} else {
					answers[i] = w.ended()
				}
			}
			compare(t, sql, answers[1], answers[0])
		}
	}
	// A client may use the id that the server gave it.
	w := e.Wire(t, e.Addr(), wireLogin{})
	w.send(packet(command(protocol.ComQuery, "KILL "+w.backendID())))
	w.ended()
}

// Checklist 33.
func TestKillOfWhatIsNotThereOrNotOnesOwn(t *testing.T) {
	server := mysqltest.Shared(t)
	server.Exec(t, "CREATE USER IF NOT EXISTS other_killer IDENTIFIED BY 'p'", "CREATE USER IF NOT EXISTS plain_killer IDENTIFIED BY 'p'")
	t.Cleanup(func() { server.Exec(t, "DROP USER other_killer, plain_killer") })
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) {
		o.Users = append(o.Users, proxy.User{Name: "other_killer", Password: "p"}, proxy.User{Name: "plain_killer", Password: "p"})
	}})
	as := func(user string) wireLogin {
		password := "p"
		return wireLogin{User: &user, Password: &password}
	}
	victim, killer := e.Wire(t, e.Addr(), as("other_killer")), e.Wire(t, e.Addr(), as("plain_killer"))
	victim.query("SET @x = 1") // attached to a server
	unused, others := e.shiftedID(1000), e.shiftedID(1<<21)
	for sql, want := range map[string]struct {
		code  uint16
		words []string
	}{
		"KILL " + victim.id():        {1095, []string{"You are not owner of thread " + victim.id()}},
		"KILL QUERY " + victim.id():  {1095, []string{"You are not owner of thread " + victim.id()}},
		"KILL " + unused:             {1094, []string{"Unknown thread id: " + unused}},
		"KILL " + others:             {1094, []string{"Unknown thread id: " + others, "another proxy"}},
		"KILL QUERY 1999999999":      {1094, []string{"Unknown thread id: 1999999999"}},
		"KILL 4294967296":            {1094, nil},
		"KILL QUERY ID 2147483650":   {0, nil}, // what the server says
		"KILL " + victim.id() + "+0": {1094, nil},
	} {
		err := serverError(t, killer.query(sql))
		if want.code != 0 && err.Code != want.code {
			t.Errorf("%s: got %v, want %d", sql, err, want.code)
		}
		for _, word := range want.words {
			if !strings.Contains(err.Message, word) {
				t.Errorf("%s: got %q, want %q in it", sql, err.Message, word)
			}
		}
	}
	if got := killer.rows("SHOW WARNINGS"); len(got) != 3 {
		t.Errorf("SHOW WARNINGS: got %v, want the error", got)
	}
	victim.ping("the KILLs of somebody else")

	admin := e.Wire(t, e.Addr(), wireLogin{})
	if got := admin.query("KILL " + victim.id()); got[4] != 0 {
		t.Errorf("an admin's KILL: %v", serverError(t, got))
	}
	if got := victim.ended(); len(got) > 0 {
		t.Errorf("the killed got %q, want nothing but the end", got)
	}
	e.awaitSessions(t, 2)
}

// shiftedID is an id that the proxy would give after so many more, or, by 2^21, that another proxy
// would give.
func (e *env) shiftedID(by uint32) string {
	c := e.Wire(e.t, e.Addr(), wireLogin{})
	defer c.Close()
	id := c.hello.Greeting.ConnectionID
	const instance, counter = (1<<10 - 1) << 21, 1<<21 - 1
	if by < counter {
		return strconv.FormatUint(uint64(id&^counter|(id+by)&counter), 10)
	}
	return strconv.FormatUint(uint64(id&^uint32(instance)|(id+by)&instance), 10)
}

// newEnvWithoutNumbers makes an env whose clients wait for a number of the sequence s: its
// sequences are on the second server, which is away.
func newEnvWithoutNumbers(t *testing.T) *env {
	t.Helper()
	servers := twoServers(t)
	e := newEnv(t, setup{Servers: servers, Sequence: func(o *sequence.Options) {
		o.Servers[0].Addr = servers[1].Addr()
		o.AllocateTimeout = 60 * time.Second
	}})
	createSequence(t, e, "s")
	if err := servers[1].Kill(); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestKillEndsASessionThatWaitsInTheProxy(t *testing.T) {
	e := newEnvWithoutNumbers(t)
	for _, schema := range []string{"", e.Schemas[0]} { // without and with a connection to a server
		wait := func() *wire {
			w := e.Wire(t, e.Addr(), wireLogin{Schema: schema})
			w.send(packet(command(protocol.ComQuery, "SELECT NEXTVAL('s')")))
			return w
		}
		killer := e.Wire(t, e.Addr(), wireLogin{})
		w := wait()
		answer := make(chan []byte, 1)
		go func() { answer <- w.receive(protocol.ShapeResult, nil) }()
		if !eventually(t, "KILL QUERY ends the wait", func() bool {
			// The first KILL may come before the statement.
			if got := killer.query("KILL QUERY " + w.id()); got[4] != 0 {
				t.Fatalf("KILL QUERY: %v", serverError(t, got))
			}
			return len(answer) > 0
		}) {
			t.FailNow()
		}
		if err := serverError(t, <-answer); err.Code != 1317 {
			t.Errorf("KILL QUERY: got %v, want 1317", err)
		}
		if got := killer.query("KILL QUERY " + w.id()); got[4] != 0 { // its statement has ended
			t.Fatalf("KILL QUERY: %v", serverError(t, got))
		}
		w.ping("KILL QUERY of an idle session")
		w.Close()
		w = wait()
		if got := killer.query("KILL " + w.id()); got[4] != 0 {
			t.Fatalf("KILL: %v", serverError(t, got))
		}
		if got := w.ended(); len(got) > 0 {
			t.Errorf("KILL: got %q, want nothing but the end", got)
		}
		killer.Close()
		e.awaitSessions(t, 0)
	}
	if err := e.Servers[1].Restart(); err != nil {
		t.Fatal(err)
	}
}

func TestKillEndsIdleSessionsAndLogins(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	killer := e.Wire(t, e.Addr(), wireLogin{Capabilities: withoutTracking})
	for _, schema := range []string{"", e.Schemas[0]} {
		w := e.Wire(t, e.Addr(), wireLogin{Schema: schema})
		if schema != "" {
			w.query("USE " + e.Schemas[1]) // two connections
		}
		if got := killer.query("KILL " + w.id()); got[4] != 0 {
			t.Fatalf("KILL: %v", serverError(t, got))
		}
		if got := w.ended(); len(got) > 0 {
			t.Errorf("schema %q: got %q, want nothing but the end", schema, got)
		}
	}
	e.awaitConnections(e.Servers[0], 0)
	e.awaitConnections(e.Servers[1], 0)
	// A client that has the greeting and sends nothing.
	nc := dialTCP(t, e.Addr())
	greeting := make([]byte, 4096)
	n, err := nc.Read(greeting)
	if err != nil {
		t.Fatal(err)
	}
	at := 5 + strings.IndexByte(string(greeting[5:n]), 0) + 1
	id := binary.LittleEndian.Uint32(greeting[at:])
	if got := killer.query(fmt.Sprintf("KILL %d", id)); got[4] != 0 {
		t.Fatalf("KILL of a login: %v", serverError(t, got))
	}
	readToEnd(t, nc)
	e.awaitSessions(t, 1)
}

func TestKillsWorkWithoutAServer(t *testing.T) {
	e := newEnv(t, setup{Shards: noShards})
	killer, w := e.Wire(t, e.Addr(), wireLogin{}), e.Wire(t, e.Addr(), wireLogin{})
	if got := killer.query("KILL " + w.id()); got[4] != 0 {
		t.Errorf("KILL: %v", serverError(t, got))
	}
	w.ended()
	if err := serverError(t, killer.query("KILL QUERY CONNECTION_ID()")); err.Code != 1317 {
		t.Errorf("KILL QUERY of itself: got %v, want 1317", err)
	}
	if err := serverError(t, killer.query("KILL 5")); err.Code != 1235 {
		t.Errorf("KILL of a server's id: got %v, want 1235", err)
	}
	killer.send(packet(command(protocol.ComQuery, "KILL CONNECTION_ID()")))
	if err := serverError(t, killer.ended()); err.Code != 1317 {
		t.Errorf("KILL of itself: got %v, want 1317", err)
	}
	e.awaitSessions(t, 0)
}

func TestKillOnAnotherShardIsSaidThereWithThatShardsAccount(t *testing.T) {
	servers := twoServers(t)
	servers[1].Exec(t, "CREATE USER shared_account IDENTIFIED BY 'p'", "GRANT ALL ON *.* TO shared_account")
	e := newEnv(t, setup{Servers: servers, Backend: func(o *backend.Options) {
		o.Shards[1].Login = &backend.Credentials{User: "shared_account", Password: "p"}
	}})
	killer := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[1]})
	e.hold(t, 1)
	w.send(packet(command(protocol.ComQuery, "SELECT GET_LOCK('held', 104)")))
	pool := servers[1].DB(t, "")
	running := func() (n int) {
		if err := pool.QueryRow("SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE '%held%104)'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	eventually(t, "the statement runs", func() bool { return running() == 1 })
	killer.query("BEGIN")
	if got := killer.query("KILL QUERY " + w.id()); got[4] != 0 || got[7]&1 == 0 {
		t.Errorf("KILL QUERY in a transaction: got %x, want OK with the status of one", got)
	}
	w.receive(protocol.ShapeResult, nil)
	// A server answers before it removes the statement from its list.
	eventually(t, "no statement runs", func() bool { return running() == 0 })
}

func TestControlCInTheCommandLineClientEndsItsStatement(t *testing.T) {
	e := newEnv(t, setup{})
	e.hold(t, 0)
	client, plain := e.Servers[0].Client(t), []string{"--skip-ssl"}
	if filepath.Base(client) == "mysql" {
		plain = []string{"--ssl-mode=DISABLED", "--get-server-public-key"}
	}
	for i, addr := range []string{e.Servers[0].Addr(), e.Addr()} {
		statement := fmt.Sprintf("SELECT GET_LOCK('held', 100), 'ctrl-c %d'", i)
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		// --force makes the client go on with its script.
		args := append([]string{"--no-defaults", "--batch", "--force", "-h", host, "-P", port, "-u", e.User, "--password=" + e.Password}, plain...)
		cmd := osexec.CommandContext(ctx, client, args...)
		cmd.Stdin = strings.NewReader(statement + ";\nSELECT 'it goes on';\n")
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		running := func() bool { return strings.Contains(e.connections(e.Servers[0]), statement) }
		eventually(t, "the statement runs", running)
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		<-ended // a batch with an interrupted statement may fail
		if running() {
			t.Error("the statement still runs")
		}
		t.Logf("%s printed: %s", []string{"direct, the client", "through the proxy, the client"}[i], out.String())
		if !strings.Contains(out.String(), "it goes on") {
			t.Errorf("got the client's output %s, want that of the whole script", out.String())
		}
	}
}

func TestKillOfAUserWhosePasswordOnlyTheServerKnows(t *testing.T) {
	if !mysqltest.Shared(t).IsMariaDB() {
		t.Skip("by this server's plugin the proxy gets the password")
	}
	const statement = "SELECT GET_LOCK('held', 3)"
	t.Run("the shard has no account", func(t *testing.T) {
		e := newEnv(t, setup{Proxy: byServer})
		e.hold(t, 0)
		killer, w := e.Wire(t, e.Addr(), wireLogin{}), e.waiter(t, e.Addr(), statement, e.Schemas[0])
		if got := killer.query("KILL QUERY " + w.id()); got[4] != 0 {
			// on the killer's own connection
			t.Errorf("KILL QUERY: %v", serverError(t, got))
		}
		w.receive(protocol.ShapeResult, nil)
		if got := killer.query("KILL " + w.id()); got[4] != 0 {
			t.Errorf("KILL: %v", serverError(t, got))
		}
		if got := w.ended(); len(got) > 0 {
			t.Errorf("the killed got %q, want nothing but the end", got)
		}
		if got := killer.query("KILL QUERY CONNECTION_ID()"); serverError(t, got).Code != 1317 {
			t.Errorf("KILL QUERY of itself: got %v, want 1317", serverError(t, got))
		}
	})
	t.Run("the shard has one", func(t *testing.T) {
		e := newEnv(t, setup{Proxy: byServer, Backend: func(o *backend.Options) { o.Shards[0].Login = &backend.Credentials{User: "root"} }})
		e.hold(t, 0)
		killer, w := e.Wire(t, e.Addr(), wireLogin{}), e.waiter(t, e.Addr(), statement, e.Schemas[0])
		if got := killer.query("KILL QUERY " + w.id()); got[4] != 0 {
			t.Errorf("KILL QUERY: %v", serverError(t, got))
		}
		w.receive(protocol.ShapeResult, nil)
		w.send(packet(command(protocol.ComQuery, statement)))
		e.awaitStatement(e.Servers[0], statement)
		w.nc.Close()
		e.awaitNoStatement(t, e.Servers[0], statement)
	})
}

func TestAKillOfSomebodyElsesSessionIsAudited(t *testing.T) {
	e := newEnv(t, setup{AdminAddress: true, Proxy: withWatcher})
	victim := func() *wire { return e.Wire(t, e.Addr(), asWire(stranger)) }
	atData, atAdmin, other := e.Wire(t, e.Addr(), wireLogin{}), e.Wire(t, e.AdminAddr(), wireLogin{}), e.Wire(t, e.Addr(), asWire(watcher))
	kept := victim()
	seen := 0
	audited := func(by *wire, statement string, want ...string) {
		t.Helper()
		all := e.Logs.FilterMessage("audit").All()
		lines := all[seen:]
		if seen = len(all); len(lines) != 1 {
			t.Errorf("%s: got %d audit lines, want one: %v", statement, len(lines), lines)
			return
		}
		got := lines[0].ContextMap()
		for field, value := range map[string]string{"statement": statement, "conn": by.id(), "outcome": want[0], "client": by.nc.LocalAddr().String(), "user": want[1]} {
			if fmt.Sprint(got[field]) != value {
				t.Errorf("%s: %s: got %v, want %s", statement, field, got[field], value)
			}
		}
		if len(want) > 2 && (fmt.Sprint(got["code"]) != want[2] || got["err"] == nil) {
			t.Errorf("%s: got code %v and error %v, want code %s", statement, got["code"], got["err"], want[2])
		}
	}
	for _, by := range []*wire{atData, atAdmin} {
		for _, words := range []string{"KILL ", "KILL QUERY "} {
			id := victim().id()
			by.query(words + id)
			audited(by, words+id, "done", e.User)
		}
	}
	id := kept.id()
	prepared := string(atData.do(protocol.ComStmtPrepare, "KILL QUERY "+id)[5:9])
	atData.do(protocol.ComStmtExecute, prepared+"\x00\x01\x00\x00\x00")
	audited(atData, "KILL QUERY "+id, "done", e.User)
	n, err := strconv.ParseUint(victim().id(), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	atData.do(protocol.ComProcessKill, string(binary.LittleEndian.AppendUint32(nil, uint32(n))))
	audited(atData, fmt.Sprintf("KILL %d", n), "done", e.User)
	if err := serverError(t, other.query("KILL "+id)); err.Code != 1095 {
		t.Errorf("a KILL by somebody else: got %v, want 1095", err)
	}
	audited(other, "KILL "+id, "failed", watcher, "1095")

	// A statement that every user may run is not audited as an admin's.
	killer := e.Wire(t, e.Addr(), asWire(stranger))
	killer.query("KILL " + id)
	kept.ended()
	if got := e.Logs.FilterMessage("audit").Len(); got != seen {
		t.Errorf("a KILL of one's own session left %d audit lines", got-seen)
	}
}
