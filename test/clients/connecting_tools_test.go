package clients_test

import (
	"context"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"seqproxy/internal/mysqld"
)

// TestCommandLineClientsAndToolsConnectToTheAdminAddress has no running server.
func TestCommandLineClientsAndToolsConnectToTheAdminAddress(t *testing.T) {
	p := start(t)
	tools := map[string]string{}
	for _, name := range []string{"admin", "show"} {
		tools[name] = p.tool(t, name)
	}
	if err := p.server.Stop(); err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(p.admin)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for name, find := range map[string]func() (path, missing string){"mariadb": findMariaDB, "mysql": findMySQL, "mariadb-11.8": findMariaDB11} {
		t.Run(name, func(t *testing.T) {
			path, missing := find()
			switch {
			case missing != "" && name == "mariadb":
				lacking(t, missing)
			case missing != "":
				t.Skipf("%s is missing; `make servers` unpacks it, where it is available", missing)
			}
			plain := []string{"--skip-ssl"}
			if name == "mysql" {
				plain = []string{"--ssl-mode=DISABLED", "--get-server-public-key", "--commands"}
			}
			for _, schema := range []string{"", "anything"} {
				args := slices.Concat([]string{"--no-defaults", "--auto-rehash", "--table", "-vvv", "-h", host, "-P", port, "-u", user, "-p" + password, "-D", schema}, plain)
				out, errs, err := output(ctx, t, p, target{}, byHand, append([]string{path}, args...)...)
				printed := strings.Join(slices.DeleteFunc(strings.Split(string(errs), "\n"), func(line string) bool { return strings.HasPrefix(line, ownWarning) }), "")
				if err != nil || printed != "" || strings.Contains(string(out), "ERROR") {
					t.Errorf("%v: %s\n%s", err, printed, out)
				}
				for _, want := range []string{"the end", "version_comment", "| gallery", "Uptime:", "Empty set"} {
					if !strings.Contains(string(out), want) {
						t.Errorf("got no %q in:\n%s", want, out)
					}
				}
			}
		})
	}
	t.Run("tools", func(t *testing.T) {
		mysql := p.server.Flavour() == mysqld.MySQL
		for _, c := range []struct {
			tool, want string
			args       []string
			refused    bool
		}{
			{"admin", "mysqld is alive", []string{"ping"}, false},
			{"admin", `^Uptime: \d+ +Threads: \d+ +Questions: \d+`, []string{"status"}, false},
			{"admin", `Server version`, []string{"version"}, false},
			{"admin", `SHOW SEQPROXY HELP`, []string{"processlist"}, true},
			{"admin", `SHOW SEQPROXY HELP`, []string{"variables"}, true},
			{"show", `SHOW SEQPROXY HELP`, nil, true},
		} {
			args := slices.Concat([]string{tools[c.tool], "--no-defaults", "--protocol=tcp", "-h" + host, "-P" + port, "-u" + user, "-p" + password}, c.args)
			if mysql {
				args = append(args, "--ssl-mode=DISABLED", "--get-server-public-key")
			} else {
				args = append(args, "--skip-ssl")
			}
			out, errs, err := output(ctx, t, p, target{}, "", args...)
			if (err != nil) != c.refused || !regexp.MustCompile(c.want).Match(append(out, errs...)) {
				t.Errorf("%s %v: %v: %s\n%s", c.tool, c.args, err, errs, out)
			}
		}
	})
}
