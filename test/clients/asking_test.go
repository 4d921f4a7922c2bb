package clients_test

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"
)

// askers are programs that ask the proxy about itself, as text and, if the driver can, prepared at
// the server.
var askers = []struct {
	name, interpreter, file, module string
	probe                           string // as in probes
}{
	{"PyMySQL", python, "asking/asking.py", "pymysql", "pymysql"},
	{"mysqlclient", python, "asking/asking.py", "MySQLdb", "MySQLdb"},
	{"npm-mysql2", "node", "node/asking.mjs", "mysql2", "node/mysql2.mjs"},
	{"npm-mariadb", "node", "node/asking.mjs", "mariadb", "node/mariadb.mjs"},
	{"php-mysqli", "php", "asking/asking.php", "mysqli", "mysqli.php"},
	{"php-PDO", "php", "asking/asking.php", "PDO", "pdo.php"},
	{"ruby-mysql2", "ruby", "asking/asking.rb", "", "mysql2.rb"},
	{"perl-DBD-mysql", "perl", "asking/asking.pl", "", "dbd.pl"},
	{"MariaDB-Connector-J", "java", "asking/Asking.java", "", "Connector.java"},
}

// cmd/seqproxy tests the same with the Go driver and the command-line clients.
func TestDriversAskTheProxyAtTheAdminAddress(t *testing.T) {
	p := start(t)
	host, port, err := net.SplitHostPort(p.admin)
	if err != nil {
		t.Fatal(err)
	}
	const want = "text devel\nagain devel\nstatus draining 0.0\nsession " + user + "\nschema anything\n"
	for _, a := range askers {
		t.Run(a.name, func(t *testing.T) {
			if what := missing(a.name, a.interpreter, a.probe); what != "" {
				lacking(t, what)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
			defer cancel()
			command := append([]string{a.interpreter}, interpreterArgs[a.interpreter]...)
			command = append(command, filepath.Join("testdata", a.file))
			if a.module != "" {
				command = append(command, a.module)
			}
			got, err := run(ctx, t, p, target{login: "password"}, "", append(command, host, port, user, password, "anything")...)
			if err != nil || string(got) != want {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
		})
	}
}
