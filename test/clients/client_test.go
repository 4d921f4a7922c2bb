package clients_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"seqproxy/internal/mysqld"
)

// client is one driver or command-line client.
type client struct {
	name string
	// logins are the client's ways to log in besides "password".
	logins []string
	// run connects and returns its transcript, even after a failure.
	run func(context.Context, *testing.T, *place, target) ([]byte, error)
	// unpacked: `make servers` brings the client, and it reports itself why it is missing.
	unpacked bool
	// missing returns what the client lacks on this machine, or "".
	missing func() string
	// unable returns why the client cannot log in directly to this server, or "". Through the proxy
	// it can.
	unable func(*place) string
}

// target is where a client connects, and how.
type target struct {
	host, port, schema string
	user               string
	// "password", "native", "tls", "clear" (over TLS), "compress" or "zstd"
	login    string
	big      int    // bytes of the big value
	sequence string // "" on a direct connection
	infile   string
}

// more are further ways to log in. A login is relayed if the proxy does not know the account, so
// that the server checks it. It is full if the server asks for the password itself. Only command
// lines name the plugin.
var (
	more         = []string{"tls", "relayed password", "relayed tls", "relayed full password", "relayed full tls"}
	moreCompress = append(slices.Clone(more), "compress", "relayed compress")
	morePlugins  = append(slices.Clone(moreCompress), "clear")
)

// clients are all, in the order of the documentation.
var clients = []client{
	{name: "go-sql-driver", logins: moreCompress, run: runGoDriver},
	commandLine("mariadb", append(slices.Clone(morePlugins), "native"), findMariaDB),
	func() client {
		c := commandLine("mysql", append(slices.Clone(morePlugins), "zstd"), findMySQL)
		c.unable, c.unpacked = lacksNative, true
		return c
	}(),
	func() client {
		c := commandLine("mariadb-11.8", append(slices.Clone(morePlugins), "native"), findMariaDB11)
		c.unpacked = true
		return c
	}(),
	script("npm-mysql2", moreCompress, "node", "node/mysql2.mjs"),
	script("npm-mariadb", moreCompress, "node", "node/mariadb.mjs"),
	func() client {
		c := script("npm-mysql", more, "node", "node/mysql.mjs")
		c.unable = needsNative
		return c
	}(),
	script("PyMySQL", more, python, "dbapi.py", "pymysql"),
	script("mysqlclient", moreCompress, python, "dbapi.py", "MySQLdb"),
	script("php-mysqli", moreCompress, "php", "mysqli.php"),
	script("php-PDO", moreCompress, "php", "pdo.php"),
	script("perl-DBD-mysql", moreCompress, "perl", "dbd.pl"),
	script("ruby-mysql2", moreCompress, "ruby", "mysql2.rb"),
	// Each run compiles and starts a virtual machine, so no login is tried twice.
	script("MariaDB-Connector-J", []string{"tls", "relayed password", "compress"}, "java", "Connector.java"),
}

// python is Debian's, for which Debian's modules are made. PATH may have another one first.
const python = "/usr/bin/python3"

// connectorJar is MariaDB Connector/J as Debian's libmariadb-java has it.
const connectorJar = "/usr/share/java/mariadb-java-client.jar"

// probes check for the things that a script needs besides its interpreter.
var probes = map[string][]string{
	"pymysql":          {python, "-c", "import pymysql"},
	"MySQLdb":          {python, "-c", "import MySQLdb"},
	"mysqli.php":       {"php", "-r", "exit(extension_loaded('mysqli') ? 0 : 1);"},
	"pdo.php":          {"php", "-r", "exit(extension_loaded('pdo_mysql') ? 0 : 1);"},
	"dbd.pl":           {"perl", "-MDBD::mysql", "-e", "1"},
	"mysql2.rb":        {"ruby", "-e", "require 'mysql2'"},
	"node/mysql2.mjs":  {"test", "-d", "testdata/node/node_modules/mysql2"},
	"node/mariadb.mjs": {"test", "-d", "testdata/node/node_modules/mariadb"},
	"node/mysql.mjs":   {"test", "-d", "testdata/node/node_modules/mysql"},
	"Connector.java":   {"test", "-e", connectorJar},

	"lost/lost.py":       {python, "-c", "import sqlalchemy, pymysql, MySQLdb"},
	"django/app.py":      {python, "-c", "import django, MySQLdb"},
	"node/sequelize.mjs": {"test", "-d", "testdata/node/node_modules/sequelize"},
	"sqlalchemy/app.py":  {python, "-c", "import sqlalchemy, pytest, pymysql, MySQLdb"},
	"activerecord.rb":    {"ruby", "-e", "require 'active_record'; require 'mysql2'"},

	"hibernate/Hibernate.java": {"test", "-e", "/usr/share/java/hibernate3.jar", "-a", "-e", connectorJar},
}

// interpreterArgs stand before a script.
var interpreterArgs = map[string][]string{
	"php":  {"-d", "mysqli.allow_local_infile=1"},
	"java": {"-XX:TieredStopAtLevel=1", "-Xmx512m", "-cp", connectorJar}, // compiles the file, too
}

// script is a client whose transcript a script of testdata makes. args precede the usual ones.
func script(name string, logins []string, interpreter, file string, args ...string) client {
	return client{
		name: name, logins: logins,
		missing: func() string {
			what := file
			if len(args) > 0 {
				what = args[0]
			}
			return missing(name, interpreter, what)
		},
		run: func(ctx context.Context, t *testing.T, p *place, to target) ([]byte, error) {
			path := filepath.Join("testdata", file)
			command := append(append([]string{interpreter}, interpreterArgs[interpreter]...), path)
			command = append(command, args...)
			command = append(command, to.host, to.port, to.user, password, to.schema)
			return run(ctx, t, p, to, "", command...)
		},
	}
}

// missing returns what a script lacks, or "": its interpreter, or the result of its probe.
func missing(name, interpreter, probe string) string {
	if _, err := exec.LookPath(interpreter); err != nil {
		return interpreter
	}
	if out, err := exec.Command(probes[probe][0], probes[probe][1:]...).CombinedOutput(); err != nil {
		return fmt.Sprintf("%s for %s (%s: %v %s)", name, interpreter, strings.Join(probes[probe], " "), err, bytes.TrimSpace(out))
	}
	return ""
}

// run runs a program to its end and returns its standard output. Any other output is an error and
// quoted there.
func run(ctx context.Context, t *testing.T, p *place, to target, stdin string, command ...string) ([]byte, error) {
	t.Helper()
	out, errs, err := output(ctx, t, p, to, stdin, command...)
	if err != nil || len(errs) > 0 {
		err = fmt.Errorf("%s: %v; it printed: %s", filepath.Base(command[0]), err, tail(string(errs)))
	}
	return out, err
}

// output runs a program to its end in the scripts' environment, and returns both of its outputs.
func output(ctx context.Context, t *testing.T, p *place, to target, stdin string, command ...string) (out, errs []byte, err error) {
	t.Helper()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.WaitDelay = 5 * time.Second
	// Ignore the user's own files: ~/.my.cnf would log in as somebody else.
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "MYSQL") || strings.HasPrefix(v, "MARIADB")
	}), "LC_ALL=C.UTF-8", "TZ=UTC", "HOME="+t.TempDir(), "LOGIN="+to.login, fmt.Sprintf("BIG=%d", to.big),
		"INFILE="+to.infile, "SEQUENCE="+to.sequence, "CA="+p.ca, "SESSION="+sessionQuery)
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err = cmd.Run(); ctx.Err() != nil {
		err = errors.Join(ctx.Err(), err)
	}
	return stdout.Bytes(), stderr.Bytes(), err
}

// tail is the end of a text, for messages.
func tail(s string) string {
	return s[max(0, len(s)-3000):]
}

// find skips the test if a client is missing, or fails it if all must be there.
func (c client) find(t *testing.T) {
	t.Helper()
	if c.missing == nil {
		return
	}
	switch what := c.missing(); {
	case what == "":
	case c.unpacked:
		t.Skipf("%s is missing; `make servers` unpacks it, where it is available", what)
	default:
		lacking(t, what)
	}
}

// lacking skips a test, or fails it if nothing may be skipped.
func lacking(t *testing.T, what string) {
	t.Helper()
	text := fmt.Sprintf("%s is not there; `make deps-clients` installs it", what)
	if os.Getenv("CI") == "true" || os.Getenv("SEQPROXY_TEST_CLIENTS") == "all" {
		t.Fatal(text + " (nothing may be skipped with CI=true or SEQPROXY_TEST_CLIENTS=all)")
	}
	t.Skip(text)
}

// repository is a path in the repository.
func repository(elements ...string) string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(append([]string{filepath.Dir(file), "..", ".."}, elements...)...)
}

// needsNative is for a client that knows only mysql_native_password. MySQL 9 no longer has that.
// The proxy checks the password itself and accepts it.
func needsNative(p *place) string {
	if p.server.Flavour() == mysqld.MySQL && p.server.Binary().AtLeast(9, 0) {
		return "it knows only mysql_native_password, and MySQL 9 does not"
	}
	return ""
}

// lacksNative is for a client without mysql_native_password.
func lacksNative(p *place) string {
	if p.server.Flavour() == mysqld.MariaDB {
		return "it has mysql_native_password no more, and MariaDB here nothing else that both know"
	}
	return ""
}
