package clients_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// findMariaDB returns the command-line client mariadb.
func findMariaDB() (path, missing string) {
	path, err := exec.LookPath("mariadb")
	if err != nil {
		return "", "mariadb, the command-line client,"
	}
	return path, ""
}

// findMySQL returns MySQL's own client. The system's mysql is often a link to mariadb.
func findMySQL() (path, missing string) { return unpacked("mysql-9", "mysql") }

// findMariaDB11 returns a newer client of MariaDB, which uses TLS by default.
func findMariaDB11() (path, missing string) { return unpacked("mariadb-11.8", "mariadb") }

// unpacked returns a program that `make servers` has unpacked.
func unpacked(dir, program string) (path, missing string) {
	path = repository(".servers", dir, "bin", program)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Sprintf("%s, the command-line client of %s,", program, dir)
	}
	return path, ""
}

// commandLine is a command-line client that runs testdata/cli.sql.
func commandLine(name string, logins []string, find func() (path, missing string)) client {
	return client{
		name: name, logins: logins,
		missing: func() string {
			_, missing := find()
			return missing
		},
		run: func(ctx context.Context, t *testing.T, p *place, to target) ([]byte, error) {
			path, _ := find()
			version, err := exec.CommandContext(ctx, path, "--no-defaults", "--version").Output()
			if err != nil {
				return nil, fmt.Errorf("%s --version: %w", path, err)
			}
			command := append([]string{path}, commandLineArgs(name, p, to)...)
			script, err := commandLineScript(to)
			if err != nil {
				return nil, err
			}
			// The client prints a failed statement's error, goes on, and ends with 0 or 1.
			out, errs, _ := output(ctx, t, p, to, script, append(command, "-p"+password)...)
			_, refused, _ := output(ctx, t, p, to, "SELECT 1", append(command, "-pwrong")...)
			version = bytes.TrimSpace(bytes.TrimPrefix(version, []byte(path)))
			return commandLineTranscript(string(version), string(out), string(errs), string(refused)), ctx.Err()
		},
	}
}

// commandLineArgs make a client print everything that it gets at once, with errors among the rows.
func commandLineArgs(name string, p *place, to target) []string {
	args := []string{
		"--no-defaults", "--batch", "--raw", "--force", "--unbuffered", "--show-warnings", "--comments",
		"--local-infile=1", "--max-allowed-packet=64M", "--default-character-set=utf8mb4",
		"-h" + to.host, "-P" + to.port, "-u" + to.user, "-D" + to.schema,
	}
	encrypted := to.login == "tls" || to.login == "clear"
	switch {
	case name == "mysql" && encrypted:
		args = append(args, "--ssl-mode=VERIFY_CA", "--ssl-ca="+p.ca)
	case name == "mysql":
		args = append(args, "--ssl-mode=DISABLED", "--get-server-public-key")
	case encrypted:
		args = append(args, "--ssl", "--ssl-verify-server-cert", "--ssl-ca="+p.ca)
	default:
		args = append(args, "--skip-ssl")
	}
	switch {
	case to.login == "compress" && name == "mysql": // --compress is deprecated there
		args = append(args, "--compression-algorithms=zlib")
	case to.login == "zstd":
		args = append(args, "--compression-algorithms=zstd", "--zstd-compression-level=5")
	case to.login == "compress":
		args = append(args, "--compress")
	case to.login == "clear" && name == "mysql":
		args = append(args, "--default-auth=mysql_clear_password", "--enable-cleartext-plugin")
	case to.login == "clear":
		args = append(args, "--default-auth=mysql_clear_password")
	case to.login == "native":
		args = append(args, "--default-auth=mysql_native_password")
	}
	return args
}

func commandLineScript(to target) (string, error) {
	text, err := os.ReadFile(filepath.Join("testdata", "cli.sql"))
	if err != nil {
		return "", err
	}
	if to.sequence != "" {
		more, err := os.ReadFile(filepath.Join("testdata", "cli_nextval.sql"))
		if err != nil {
			return "", err
		}
		text = append(text, more...)
	}
	big := strings.Repeat(strings.ReplaceAll(pattern, "\x00", `\0`), to.big/len(pattern)+1)
	big = big[:to.big/len(pattern)*(len(pattern)+1)+to.big%len(pattern)] // the zero byte takes two
	return strings.NewReplacer("@BIG@", big, "@INFILE@", to.infile, "@SEQUENCE@", to.sequence, "@LOGIN@", to.login).Replace(string(text)), nil
}

// clientError matches the clients' error messages.
var clientError = regexp.MustCompile(`^ERROR (\d+) \((\w+)\)(?: at line \d+)?: (.*)$`)

// heading matches the heading of a transcript's line.
var heading = regexp.MustCompile(`^(JSON_OBJECT|CONCAT)\(`)

// ownWarning is mysql's warning about a password in its arguments.
const ownWarning = "mysql: [Warning] Using a password"

// commandLineTranscript makes steps of a client's output. Lines after a step with the value NULL
// are its value. All other lines are in the step "output".
func commandLineTranscript(version, out, errs, refused string) []byte {
	type step struct {
		Step  string `json:"step"`
		Value any    `json:"value"`
	}
	steps := []step{{"client", version}}
	var other []string
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\n")
		var s step
		if strings.HasPrefix(line, `{"step"`) && json.Unmarshal([]byte(line), &s) == nil {
			switch v, _ := s.Value.([]any); {
			case s.Value == nil:
				s.Value = []string{}
			case s.Step == "big" && len(v) == 3:
				data := strings.ReplaceAll(fmt.Sprint(v[2]), ".", "\x00")
				sum := sha256.Sum256([]byte(data))
				s.Value = []any{v[0], v[1], fmt.Sprint(len(data)), hex.EncodeToString(sum[:])}
			}
			steps = append(steps, s)
			continue
		}
		last := &steps[len(steps)-1]
		if lines, ok := last.Value.([]string); ok {
			last.Value = append(lines, line)
		} else if !heading.MatchString(line) && last.Step != "big" {
			other = append(other, line)
		}
	}
	var codes, unknown [][]string
	for line := range strings.Lines(errs) {
		if m := clientError.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			codes = append(codes, m[1:])
		} else if !strings.HasPrefix(line, ownWarning) {
			unknown = append(unknown, []string{line})
		}
	}
	steps = append(steps, step{"error", codes}, step{"output", other})
	if unknown != nil {
		steps = append(steps, step{"unknown errors", unknown})
	}
	for line := range strings.Lines(refused) {
		if m := clientError.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			steps = append(steps, step{"refused", m[1:]})
		}
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text) // which ends each with a newline
	for _, s := range steps {
		if err := encoder.Encode(s); err != nil {
			panic(err) // strings and lists of them
		}
	}
	return text.Bytes()
}
