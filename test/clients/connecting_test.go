package clients_test

import (
	"bufio"
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	gormmysql "gorm.io/driver/mysql"
	"gorm.io/gorm"

	"seqproxy/internal/mysqld"
	"seqproxy/protocol"
)

// connecting is the list of statements that clients send when they connect to a proxy without a
// server: where only keys are served, and at the admin address. The proxy's tests have the answers.
var connecting = filepath.Join("..", "..", "proxy", "testdata", "connecting.txt")

// TestWhatClientsAskWhenTheyConnectIsInTheList connects with each client and notes what it sends.
func TestWhatClientsAskWhenTheyConnectIsInTheList(t *testing.T) {
	p := start(t)
	p.addPlainUser(t)
	p.reconfigure(t, func(text string) string { // no shard, no TLS that nobody could listen to
		before, tls, _ := strings.Cut(text, "[tls]")
		_, users, _ := strings.Cut(tls, "[[user]]")
		users, more, _ := strings.Cut(users, "[[shard]]")
		_, plain, _ := strings.Cut(more, fmt.Sprintf("\n[[user]]\nname = %q", plainUser))
		return strings.Replace(before, `unknown_user = "backend"`, "", 1) + "[[user]]" + users + fmt.Sprintf("\n[[user]]\nname = %q", plainUser) + plain
	})
	list := readConnecting(t)
	for place, addr := range map[string]string{"keys only": p.proxy, "admin": p.admin} {
		for name, run := range connectors(t, p, addr) {
			t.Run(place+" "+name, func(t *testing.T) {
				r := record(t, addr)
				host, port, err := net.SplitHostPort(r.addr)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
				defer cancel()
				run(ctx, t, target{host: host, port: port, schema: "anything", login: "password"})
				seen := r.exchanges()
				if len(seen) == 0 {
					t.Error("nothing was seen")
				}
				for _, e := range seen {
					if want, ok := list[e.text]; !ok {
						t.Errorf("not in %s: %q, which got %s", connecting, e.text, e.answer)
					} else if e.answer != want {
						t.Errorf("%q: got %s, want %s", e.text, e.answer, want)
					}
				}
			})
		}
	}
}

// readConnecting reads the list: whether each statement is answered ("ok"), or with which error.
func readConnecting(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(connecting)
	if err != nil {
		t.Fatal(err)
	}
	list := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if strings.HasPrefix(line, "#") || len(fields) != 3 {
			continue
		}
		if list[fields[1]] = "ok"; strings.HasPrefix(fields[2], "error ") {
			list[fields[1]] = fields[2]
		}
	}
	return list
}

// connectors connect, ask the proxy something, and do what users do with a connection: check that
// it is alive, commit, ask for warnings.
func connectors(t *testing.T, p *place, addr string) map[string]func(context.Context, *testing.T, target) {
	all := make(map[string]func(context.Context, *testing.T, target))
	command := func(ctx context.Context, t *testing.T, to target, stdin string, args ...string) {
		t.Helper()
		if out, errs, err := output(ctx, t, p, to, stdin, args...); err != nil {
			t.Errorf("%s: %v: %s\n%s", args[0], err, errs, out)
		}
	}
	for _, a := range askers {
		all[a.name] = func(ctx context.Context, t *testing.T, to target) {
			if what := missing(a.name, a.interpreter, a.probe); what != "" {
				lacking(t, what)
			}
			args := slices.Concat([]string{a.interpreter}, interpreterArgs[a.interpreter], []string{filepath.Join("testdata", a.file)})
			if a.module != "" {
				args = append(args, a.module)
			}
			command(ctx, t, to, "", append(args, to.host, to.port, user, password, to.schema)...)
		}
	}
	for _, a := range []struct{ name, interpreter, file, driver, probe string }{
		{"SQLAlchemy, PyMySQL", python, "connecting/sqlalchemy.py", "pymysql", "sqlalchemy/app.py"},
		{"SQLAlchemy, mysqlclient", python, "connecting/sqlalchemy.py", "mysqldb", "sqlalchemy/app.py"},
		{"Sequelize", "node", "node/connecting.mjs", "", "node/sequelize.mjs"},
		{"ActiveRecord", "ruby", "connecting/activerecord.rb", "", "activerecord.rb"},
	} {
		all[a.name] = func(ctx context.Context, t *testing.T, to target) {
			if what := missing(a.name, a.interpreter, a.probe); what != "" {
				lacking(t, what)
			}
			args := []string{a.interpreter, filepath.Join("testdata", a.file)}
			name, secret := user, password
			if a.driver != "" {
				args = append(args, a.driver)
				name, secret = plainUser, plainPassword
			}
			command(ctx, t, to, "", append(args, to.host, to.port, name, secret, to.schema)...)
		}
	}
	for name, find := range map[string]func() (path, missing string){"mariadb": findMariaDB, "mysql": findMySQL, "mariadb-11.8": findMariaDB11} {
		all[name] = func(ctx context.Context, t *testing.T, to target) {
			path, missing := find()
			switch {
			case missing != "" && name == "mariadb":
				lacking(t, missing)
			case missing != "":
				t.Skipf("%s is missing; `make servers` unpacks it, where it is available", missing)
			}
			args := []string{path, "--no-defaults", "--auto-rehash", "--table", "-vvv", "--show-warnings", "-h", to.host, "-P", to.port, "-u", user, "-p" + password}
			if name == "mysql" {
				args = append(args, "--ssl-mode=DISABLED", "--get-server-public-key", "--commands")
			} else {
				args = append(args, "--skip-ssl")
			}
			command(ctx, t, to, byHand, append(args, "-D", to.schema)...)
			command(ctx, t, to, byHand, args...)
		}
	}
	for _, args := range [][]string{{"admin", "ping"}, {"admin", "status"}, {"admin", "version"}} {
		all[strings.Join(args, " ")] = func(ctx context.Context, t *testing.T, to target) {
			tool := []string{p.tool(t, args[0]), "--no-defaults", "--protocol=tcp", "-h" + to.host, "-P" + to.port, "-u" + user, "-p" + password}
			if p.server.Flavour() == mysqld.MySQL {
				tool = append(tool, "--ssl-mode=DISABLED", "--get-server-public-key")
			} else {
				tool = append(tool, "--skip-ssl")
			}
			command(ctx, t, to, "", append(tool, args[1:]...)...)
		}
	}
	all["go-sql-driver"] = connectGo
	all["GORM"] = connectGORM
	return all
}

// byHand is a session of a person at a command-line client. \# reads the names of all tables and
// columns, as a client with completion does by itself.
const byHand = `\s
\#
USE gallery
SHOW SEQPROXY VERSION;
select @@version_comment limit 1;
SELECT DATABASE();
SHOW WARNINGS;
SELECT 'the end' AS here;
`

// connectGo asks the server for max_allowed_packet and sets what users set: one variable, since the
// driver's order of several is random.
func connectGo(ctx context.Context, t *testing.T, to target) {
	c := config(net.JoinHostPort(to.host, to.port), to.schema)
	c.MaxAllowedPacket = 0
	c.Params = map[string]string{"time_zone": "'+00:00'"}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true, Isolation: sql.LevelReadCommitted})
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
	if err := db.PingContext(ctx); err != nil {
		t.Error(err)
	}
}

func connectGORM(ctx context.Context, t *testing.T, to target) {
	c := config(net.JoinHostPort(to.host, to.port), to.schema)
	db, err := gorm.Open(gormmysql.New(gormmysql.Config{DSNConfig: c, DSN: c.FormatDSN()}))
	if err != nil {
		t.Fatal(err)
	}
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := pool.PingContext(ctx); err != nil {
		t.Error(err)
	}
}

// exchange is a command, and whether its answer is an error.
type exchange struct{ text, answer string }

// recorder forwards connections from one address to another and records the clients' commands.
type recorder struct {
	addr string
	mu   sync.Mutex
	all  []exchange // guarded by mu; an empty answer has not come yet
}

// exchanges returns all commands with an answer, each once.
func (r *recorder) exchanges() []exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := slices.Clone(r.all)
	slices.SortFunc(seen, func(a, b exchange) int { return cmp.Or(cmp.Compare(a.text, b.text), cmp.Compare(a.answer, b.answer)) })
	return slices.DeleteFunc(slices.Compact(seen), func(e exchange) bool { return e.answer == "" })
}

// record starts a recorder in front of an address, until the test ends.
func record(t *testing.T, to string) *recorder {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{addr: listener.Addr().String()}
	var group sync.WaitGroup
	group.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				_ = client.Close()
				continue
			}
			// indexes into all of the commands without an answer
			pending := make(chan int, 1000)
			group.Go(func() { r.pass(server, client, func(payload []byte) { r.command(payload, pending) }, 0) })
			group.Go(func() { r.pass(client, server, func(payload []byte) { r.answer(payload, pending) }, 1) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		group.Wait()
	})
	return r
}

// pass forwards packets. It calls look before it forwards a packet with the given number.
func (r *recorder) pass(dst, src net.Conn, look func(payload []byte), number byte) {
	defer dst.Close() //nolint:errcheck // the other direction ends with this one
	from := bufio.NewReader(src)
	for {
		var header [protocol.HeaderSize]byte
		if _, err := io.ReadFull(from, header[:]); err != nil {
			return
		}
		payload := make([]byte, int(header[0])|int(header[1])<<8|int(header[2])<<16)
		if _, err := io.ReadFull(from, payload); err != nil {
			return
		}
		if header[3] == number && len(payload) > 0 {
			look(payload)
		}
		if _, err := dst.Write(append(header[:], payload...)); err != nil {
			return
		}
	}
}

func (r *recorder) command(payload []byte, pending chan<- int) {
	text := ""
	switch c := protocol.Command(payload[0]); c {
	case protocol.ComQuery, protocol.ComStmtPrepare:
		if text = strings.TrimPrefix(string(payload[1:]), "\x00\x01"); strings.Contains(text, "SEQPROXY") {
			// after the query attributes, of which there are none
			text = "" // a statement of this program
		}
	case protocol.ComStmtExecute, protocol.ComInitDB:
	case protocol.ComStmtClose, protocol.ComStmtLongData, protocol.ComQuit:
		return // have no answer
	default:
		text = fmt.Sprintf("command 0x%02x", byte(c))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	at := -1
	if text != "" {
		at = len(r.all)
		r.all = append(r.all, exchange{text: text})
	}
	pending <- at
}

func (r *recorder) answer(payload []byte, pending <-chan int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case at := <-pending:
		if at < 0 {
			return
		}
		if r.all[at].answer = "ok"; payload[0] == 0xff && len(payload) > 2 {
			r.all[at].answer = fmt.Sprintf("error %d", binary.LittleEndian.Uint16(payload[1:]))
		}
	default: // of the login
	}
}
