package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"seqproxy/test/mysqltest"
)

const ready = "Ctrl-C stops everything."

// TestPlaygroundInADirectory has the tests that can share one directory, since making the servers'
// data takes long.
func TestPlaygroundInADirectory(t *testing.T) {
	home := t.TempDir()
	for _, test := range []struct {
		name string
		run  func(t *testing.T, home string)
	}{
		{"keeps data, and numbers go on without a gap", dirKeepsData},
		{"listens on IPv6", playgroundListensOnIPv6},
		{"differs from a server as documented", differsAsDocumented},
		{"killed, leaves no server", killedPlaygroundLeavesNoServer},
		{"starts servers again that were killed", killedServersAreStartedAgain},
		{"ends at once with the second Ctrl-C", secondCtrlCEndsAtOnce},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, home) })
	}
}

// startPlayground starts a playground on a free port.
func startPlayground(t *testing.T, home string, args ...string) (p *process, address string) {
	t.Helper()
	if server := os.Getenv(mysqltest.ServerEnv); server != "" {
		args = append(args, "--server", server)
	}
	p = begin(t, append([]string{"playground", "--listen", "127.0.0.1:0", "--dir", home}, args...)...)
	p.await(ready)
	return p, playgroundAddress(t, p)
}

var listensOn = regexp.MustCompile(`A proxy listens on (\S+),`)

func playgroundAddress(t *testing.T, p *process) string {
	t.Helper()
	match := listensOn.FindStringSubmatch(p.stdout())
	if match == nil {
		t.Fatal("the playground printed no address")
	}
	return match[1]
}

// TestANewUserTriesThePlayground runs the commands that the playground prints. They are those of
// README.md and have the output that it shows. It ends with Ctrl-C.
func TestANewUserTriesThePlayground(t *testing.T) {
	bystander := mysqltest.Shared(t)
	tmp := t.TempDir()
	p := beginIn(t, []string{"TMPDIR=" + tmp}, "playground", "--listen", "127.0.0.1:0")
	p.await(ready)

	var commands []string
	_, rest, _ := strings.Cut(p.stdout(), "Try it:\n")
	for line := range strings.Lines(rest) {
		if command, ok := strings.CutPrefix(line, "  "); ok {
			commands = append(commands, strings.TrimSpace(command))
		}
	}
	session := readmeSession(t)
	if len(commands) != 1+len(session) {
		t.Fatalf("got %d commands to try, want a client and the %d of README.md:\n%s", len(commands), len(session), strings.Join(commands, "\n"))
	}
	login := commands[0]
	session = append([][2]string{{login, "9\n9\n"}}, session...)
	for i, command := range commands {
		want := session[i]
		if i > 0 {
			inReadme := strings.Replace(want[0], "mariadb -h 127.0.0.1 -P 4306 -u root -t", login, 1)
			if command != inReadme {
				t.Errorf("the playground says to try\n%s\nREADME.md says\n%s", command, inReadme)
			}
			command = strings.Replace(command, login, login+" -t", 1)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		cmd := exec.CommandContext(ctx, "sh", "-c", command)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + tmp}
		// the first command reads it, since it is interactive
		cmd.Stdin = strings.NewReader("SELECT 4+5 AS `9`;\n")
		got, err := cmd.CombinedOutput()
		cancel()
		if err != nil || string(got) != want[1] {
			t.Errorf("%s\ngot  %q, %v\nwant %q", command, got, err, want[1])
		}
	}

	_, admin, _ := strings.Cut(p.stdout(), "The admin address is ")
	admin, _, _ = strings.Cut(admin, ",")
	if got := query(t, admin, "root", "", "SHOW SEQPROXY HELP"); !strings.HasPrefix(got, "SHOW SEQPROXY HELP\t") {
		t.Errorf("at the admin address %s: got %q, want the help", admin, got)
	}

	_, certificate, _ := strings.Cut(p.stdout(), "For TLS add ")
	certificate, _, _ = strings.Cut(certificate, "\n")
	address := playgroundAddress(t, p)
	for _, args := range [][]string{{certificate}, {"--ssl"}} {
		if got := query(t, address, "root", "", `\s`, args...); !strings.Contains(got, "Cipher in use is TLS_") {
			t.Errorf("the client's status with %s: got %q, want a cipher in it", args, got)
		}
	}
	if output, err := client(t, address, "root", "", "-e", "SELECT 1", "--ssl-verify-server-cert", certificate); err != nil {
		t.Errorf("the certificate verified: %v: %s", err, output)
	}

	homes, err := filepath.Glob(filepath.Join(tmp, "seqproxy-playground-*"))
	if err != nil || len(homes) != 1 {
		t.Fatalf("directories of the playground: got %q, %v, want one", homes, err)
	}
	pids := serverPIDs(t, homes[0])
	p.signal(os.Interrupt)
	p.end(0)
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
			t.Errorf("server with pid %d after Ctrl-C: got %v, want it gone", pid, err)
		}
	}
	if remains, err := os.ReadDir(tmp); err != nil || len(remains) > 0 {
		t.Errorf("left in the temporary directory: got %v, %v, want nothing", remains, err)
	}
	if got := p.stderr(); got != "" {
		t.Errorf("stderr: got %q, want nothing", got)
	}
	if !bystander.Running() {
		t.Error("Ctrl-C ended a server that is not the playground's")
	}
}

func dirKeepsData(t *testing.T, home string) {
	p, address := startPlayground(t, home)
	first := query(t, address, "root", "", "SELECT NEXTVAL('photos') - 1; INSERT INTO album1.photos VALUES (99, 'kept')", "album1")
	if !strings.Contains(p.stdout(), "The data is kept in "+home+".") {
		t.Error("the playground does not say where the data is kept")
	}
	// An account on the server is enough to log in.
	query(t, address, "root", "", "CREATE USER IF NOT EXISTS fan@'%' IDENTIFIED BY 'pw'; GRANT SELECT ON album0.* TO fan@'%'")
	if got := query(t, address, "fan", "pw", "SELECT COUNT(*) >= 0 FROM photos", "album0"); got != "1" {
		t.Errorf("an account made on the server: got %q, want 1", got)
	}
	p.signal(syscall.SIGTERM)
	p.end(0)
	awaitServersGone(t, home)

	before := certificateFiles(t, home)
	p, address = startPlayground(t, home)
	if after := certificateFiles(t, home); after != before {
		t.Error("the certificate was made anew, want the one that was kept")
	}
	if got, want := query(t, address, "root", "", "SELECT NEXTVAL('photos') - 2"), first; got != want {
		t.Errorf("two below the number after the restart: got %s, want %s: a gap or a duplicate", got, want)
	}
	// An application that updates the table itself, as without a proxy, also gets keys from memory.
	if got := query(t, address, "root", "", "UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos'; SELECT LAST_INSERT_ID() - 3", "seqproxy"); got != first {
		t.Errorf("three below the next number, by the table: got %s, want %s", got, first)
	}
	if got := query(t, address, "root", "", "SELECT title FROM photos WHERE id = 99; DELETE FROM photos WHERE id = 99", "album1"); got != "kept" {
		t.Errorf("row after the restart: got %q, want %q", got, "kept")
	}

	// No other playground can use the directory.
	second := begin(t, "playground", "--listen", "127.0.0.1:0", "--dir", home)
	second.end(1)
	want := "seqproxy: the directory " + home + " belongs to a playground that is running: end that one, or choose another with -dir DIR\n"
	if got := second.stderr(); got != want {
		t.Errorf("a second playground: got %q, want %q", got, want)
	}
	// Nor the port.
	second = begin(t, "playground", "--listen", address)
	second.end(1)
	want = "seqproxy: address " + address + " is in use: end what listens there, or choose another with -listen HOST:PORT\n"
	if got := second.stderr(); got != want {
		t.Errorf("a second playground on the port: got %q, want %q", got, want)
	}
	serverPIDs(t, home) // still there
	if got := query(t, address, "root", "", "SELECT 1"); got != "1" {
		t.Errorf("the first playground after the second: got %q, want 1", got)
	}
	p.signal(os.Interrupt)
	p.end(0)
	awaitServersGone(t, home)
}

// certificateFiles returns the contents of the playground's certificate files. Only their owner may
// read these.
func certificateFiles(t *testing.T, home string) (content string) {
	t.Helper()
	for name, want := range map[string]os.FileMode{"tls": 0o700, "tls/cert.pem": 0o600, "tls/key.pem": 0o600} {
		info, err := os.Stat(filepath.Join(home, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("mode of %s: got %o, want %o", name, got, want)
		}
	}
	for _, name := range []string{"tls/cert.pem", "tls/key.pem"} {
		b, err := os.ReadFile(filepath.Join(home, name))
		if err != nil {
			t.Fatal(err)
		}
		content += string(b)
	}
	return content
}

// TestThePlaygroundsCertificateIsMadeAnewInTime uses a kept directory.
func TestThePlaygroundsCertificateIsMadeAnewInTime(t *testing.T) {
	h := home{dir: t.TempDir(), kept: true}
	files, err := h.certificate()
	if err != nil {
		t.Fatal(err)
	}
	first := certificateFiles(t, h.dir)
	if _, err := h.certificate(); err != nil || certificateFiles(t, h.dir) != first {
		t.Errorf("%v; a good certificate was made anew", err)
	}
	if err := os.WriteFile(files.CertFile, []byte("half of a certifi"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := h.certificate(); err != nil || certificateFiles(t, h.dir) == first {
		t.Errorf("%v; a spoiled certificate was not made anew", err)
	}
	old := mysqltest.NewCA(t).Server(t, "127.0.0.1") // it ends in a few hours
	replace(t, old.CertFile, files.CertFile)
	replace(t, old.KeyFile, files.KeyFile)
	second := certificateFiles(t, h.dir)
	if _, err := h.certificate(); err != nil || certificateFiles(t, h.dir) == second {
		t.Errorf("%v; a certificate that ends soon was not made anew", err)
	}
}

func killedPlaygroundLeavesNoServer(t *testing.T, home string) {
	p, _ := startPlayground(t, home)
	serverPIDs(t, home)
	p.signal(os.Kill)
	p.end(-1)
	awaitServersGone(t, home)
}

func killedServersAreStartedAgain(t *testing.T, home string) {
	if testing.Short() {
		t.Skip("CI runs it: servers are away for ten seconds, twice")
	}
	p, address := startPlayground(t, home)
	first, err := strconv.Atoi(query(t, address, "root", "", "SELECT NEXTVAL('photos')"))
	if err != nil {
		t.Fatal(err)
	}
	pids := serverPIDs(t, home)
	if want := fmt.Sprintf("\nFor an outage: kill -9 %d, which is 127.0.0.1:%s (sequences, shard photos0). Keys go on, and 10 seconds later the server is started again.\n",
		pids[0], query(t, address, "root", "", "SELECT @@port", "album0")); !strings.Contains(p.stdout(), want) {
		t.Errorf("stdout does not have %q:\n%s", want, p.stdout())
	}
	for i, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		p.await("(" + holds(i, 1) + ") is gone. Keys go on")
	}
	if got, want := query(t, address, "root", "", "SELECT NEXTVAL('photos')"), strconv.Itoa(first+1); got != want {
		t.Errorf("with both servers down: got key %s, want %s", got, want)
	}
	p.awaitCount(" is back, with pid ", len(pids))
	for i, pid := range serverPIDs(t, home) {
		if pid == pids[i] {
			t.Errorf("server %d has the pid %d again", i, pid)
		}
	}
	for i, schema := range exampleSchemas {
		want := strconv.Itoa(first + 2 + i)
		if got := query(t, address, "root", "", "INSERT INTO photos VALUES (NEXTVAL('photos'), 'back'); SELECT id FROM photos WHERE title = 'back'; DELETE FROM photos WHERE title = 'back'", schema); got != want {
			t.Errorf("%s after the outage: got %q, want a row with key %s", schema, got, want)
		}
	}

	// A server that cannot be started again is reported, and ends the playground.
	data := filepath.Join(home, "server1", "data")
	if err := os.Rename(data, data+".away"); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(serverPIDs(t, home)[1], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.end(1)
	for _, want := range []string{"seqproxy: the server 127.0.0.1:", "(shard photos1) was gone, and cannot be started again: ", "end of " + filepath.Join(home, "server1")} {
		if !strings.Contains(p.stderr(), want) {
			t.Errorf("stderr does not have %q: %s", want, p.stderr())
		}
	}
	awaitServersGone(t, home)
	if err := errors.Join(os.RemoveAll(data), os.Rename(data+".away", data)); err != nil {
		t.Fatal(err)
	}
}

func secondCtrlCEndsAtOnce(t *testing.T, home string) {
	p, address := startPlayground(t, home)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = client(t, address, "root", "", "-e", "SELECT SLEEP(30)")
	}()
	awaitStatement(t, address, "SLEEP(30)")
	p.signal(os.Interrupt)
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) { // it has seen the first
		c, err := net.Dial("tcp", address)
		if err != nil {
			break
		}
		_ = c.Close()
		if time.Now().After(deadline) {
			t.Fatal("the playground still accepts clients")
		}
	}
	time.Sleep(2 * sameWish) // the proxy waits for the statement now
	p.signal(os.Interrupt)
	p.end(1)
	if got, want := p.stderr(), "seqproxy: ended at once by a second signal\n"; !strings.HasSuffix(got, want) {
		t.Errorf("stderr: got %q, want it to end in %q", got, want)
	}
	awaitServersGone(t, home)
	<-done
}

// awaitStatement waits until a statement with that text runs.
func awaitStatement(t *testing.T, address, text string) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if query(t, address, "root", "", "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE '%"+text+"%' AND ID <> CONNECTION_ID()") != "0" {
			return
		}
	}
	t.Fatalf("no statement with %s runs", text)
}

func TestCtrlCDuringTheStartEndsEverything(t *testing.T) {
	tmp := t.TempDir()
	p := beginIn(t, []string{"TMPDIR=" + tmp}, "playground", "--listen", "127.0.0.1:0")
	p.await("Starting 2 private servers")
	p.signal(os.Interrupt)
	p.end(0)
	if want := "Stopped before everything was ready."; !strings.Contains(p.stdout(), want) {
		t.Errorf("stdout does not have %q", want)
	}
	if remains, err := os.ReadDir(tmp); err != nil || len(remains) > 0 {
		t.Errorf("left in the temporary directory: got %v, %v, want nothing", remains, err)
	}
}

func playgroundListensOnIPv6(t *testing.T, home string) {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip("this machine has no IPv6 loopback:", err)
	}
	_ = l.Close()
	p, address := startPlayground(t, home, "--listen", "[::1]:0")
	if !strings.HasPrefix(address, "[::1]:") {
		t.Errorf("address: got %s, want one of [::1]", address)
	}
	if want := " -h ::1 -P "; !strings.Contains(p.stdout(), want) {
		t.Errorf("the commands to try do not have %q", want)
	}
	if got := query(t, address, "root", "", "SELECT 1"); got != "1" {
		t.Errorf("over IPv6: got %q, want 1", got)
	}
	p.signal(os.Interrupt)
	p.end(0)
}

// differsAsDocumented tries the differences in docs/compatibility.md that no other test covers.
func differsAsDocumented(t *testing.T, home string) {
	p, address := startPlayground(t, home)
	mariaDB := strings.Contains(p.stdout(), "(MariaDB ")
	for _, test := range []struct{ schema, sql, want string }{
		// the text does not choose the shard
		{"album0", "SELECT * FROM album1.photos", "ERROR 1146 (42S02)"},
		{"album1", "SELECT * FROM album0.photos", "ERROR 1146 (42S02)"},
		{"album0", "SELECT NEXTVAL(album0.photos)", "Unknown SEQUENCE: 'album0.photos'"},
		{"album1", "CREATE SEQUENCE album0.s; SELECT NEXTVAL('album0.s'); DROP SEQUENCE album0.s", "\n1\n"},
		// MariaDB looks for a sequence of its own
		{"album0", "CREATE TABLE d (id BIGINT DEFAULT NEXTVAL(photos))", "ERROR 4089 (42S02)"},
		{"album1", "CREATE SEQUENCE album0.q; SELECT NEXTVAL(album0.q); DROP SEQUENCE album0.q", "\n1\n"},
		{"album0", "CREATE TABLE d AS SELECT NEXTVAL('photos')", "ERROR 1235 (42000)"},
		{"album1", "CREATE DATABASE nobodys; USE nobodys; SELECT DATABASE(); SHOW DATABASES LIKE 'album%'; DROP DATABASE nobodys", "nobodys\nDatabase (album%)\nalbum0\n"},
		{"album0", "BEGIN; USE album1", "ERROR 1235 (42000)"},
	} {
		if !mariaDB {
			switch {
			case strings.Contains(test.want, "4089"):
				continue // MySQL has no sequences and reports something else
			case strings.Contains(test.want, "1146"):
				test.want = "ERROR 1049 (42000)" // the schema is missing, and so is the table
			}
		}
		output, _ := client(t, address, "root", "", "-e", test.sql, test.schema)
		if !strings.Contains(output, test.want) {
			t.Errorf("%s: %s: got %q, want %q in it", test.schema, test.sql, output, test.want)
		}
	}
	// A rollback does not take numbers back.
	output := query(t, address, "root", "", "SELECT NEXTVAL('photos'); BEGIN; SELECT NEXTVAL('photos') - 1; ROLLBACK; SELECT NEXTVAL('photos') - 2")
	if n := strings.Split(output, "\n"); len(n) != 3 || n[0] != n[1] || n[1] != n[2] {
		t.Errorf("numbers around a ROLLBACK, less 0, 1 and 2: got %q, want three times the same", output)
	}
	p.signal(os.Interrupt)
	p.end(0)
}

func TestWhatKeepsThePlaygroundFromStarting(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close() //nolint:errcheck // nobody connected
	file := write(t, "file", "")
	for _, test := range []struct {
		name   string
		args   []string
		status int
		want   string
	}{
		{
			"port in use",
			[]string{"--listen", taken.Addr().String()},
			1,
			"address " + taken.Addr().String() + " is in use: end what listens there, or choose another with -listen HOST:PORT",
		},
		{
			"address of others",
			[]string{"--listen", "192.0.2.1:4306"},
			2,
			`-listen must be a loopback address such as 127.0.0.1 or [::1], since the playground's root has no password; is "192.0.2.1:4306"`,
		},
		{"no address", []string{"--listen", "4306"}, 2, `-listen must be HOST:PORT such as 127.0.0.1:4306, is "4306"`},
		{
			"missing binary",
			[]string{"--server", "/none/mariadbd"},
			1,
			"-server: server binary /none/mariadbd: stat /none/mariadbd: no such file or directory",
		},
		{
			"directory that is a file",
			[]string{"--dir", file},
			1,
			"the servers' data cannot be kept in " + file + ": mkdir " + file + ": not a directory; choose another with -dir DIR",
		},
		{
			"directory that cannot be made",
			[]string{"--dir", file + "/x"},
			1,
			"the servers' data cannot be kept in " + file + "/x: mkdir " + file + ": not a directory; choose another with -dir DIR",
		},
		{"argument", []string{"now"}, 2, `"now" is too much: seqproxy playground takes no further argument`},
	} {
		t.Run(test.name, func(t *testing.T) {
			tmp := t.TempDir()
			args := append([]string{"playground", "--listen", "127.0.0.1:0"}, test.args...)
			p := beginIn(t, []string{"TMPDIR=" + tmp}, args...)
			p.end(test.status)
			if got, want := p.stderr(), "seqproxy: "+test.want+"\n"; got != want {
				t.Errorf("stderr: got %q, want %q", got, want)
			}
			if remains, err := os.ReadDir(tmp); err != nil || len(remains) > 0 {
				t.Errorf("left in the temporary directory: got %v, %v, want nothing", remains, err)
			}
		})
	}
}

// TestTheDemoKeepsItsPromise kills one server under load.
func TestTheDemoKeepsItsPromise(t *testing.T) {
	if testing.Short() {
		t.Skip("CI runs it: twelve seconds of the demo")
	}
	args := []string{"playground", "--demo", "--for", "12s", "--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"}
	if server := os.Getenv(mysqltest.ServerEnv); server != "" {
		args = append(args, "--server", server)
	}
	p := begin(t, args...)
	p.end(0)
	if out := p.stdout(); !regexp.MustCompile(`\n[1-9]\d* keys in \S+, 0 duplicates, 0 errors; [1-9]\d* rows, \d+ more failed while a server was down; servers killed: 1\n`).MatchString(out) {
		t.Errorf("got\n%s%s", out, p.stderr())
	}
}
