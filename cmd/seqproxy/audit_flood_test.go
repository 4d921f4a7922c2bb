package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// A user without the right to change anything cannot fill the log: refused statements are counted
// after a while, and cut. Changes by admins are always written.
func TestRefusedStatementsDoNotFillTheLog(t *testing.T) {
	c := startControlled(t, "")
	conn, err := c.app.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, 2000)
	for i := range names {
		names[i] = fmt.Sprintf("`%060d`", i)
	}
	long := strings.Repeat("x", 100_000)
	tried := 0
	for i := range 150 {
		for _, text := range []string{
			"DROP SEQUENCE " + strings.Join(names, ","), fmt.Sprintf("DROP SEQUENCE s%d, %s", i, strings.Join(names, ",")), fmt.Sprintf("CREATE SEQUENCE s%d", i),
			fmt.Sprintf("ALTER SEQUENCE `%s%d` CACHE 5", long, i), fmt.Sprintf("SELECT SETVAL('s%d', %d)", i, i), fmt.Sprintf("SELECT SETVAL('%s%d', 5)", long, i),
			"CREATE SEQUENCE t OWNED BY `" + long + "`.`" + long + "`", "SEQPROXY PAUSE SHARD '" + long + "'", "SEQPROXY ADD SEQUENCE SERVER '" + long + "'",
		} {
			_, err := conn.ExecContext(context.Background(), text)
			var refusal *mysql.MySQLError
			if !errors.As(err, &refusal) || refusal.Number != 1227 {
				t.Fatalf("%.100s: got %v, want error 1227", text, err)
			}
			tried++
		}
		if _, err := c.root.Exec(fmt.Sprintf("CREATE SEQUENCE made%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.root.Exec("DROP SEQUENCE made0, made1, nobody, made2"); err == nil {
		t.Error("DROP of an unknown sequence: got no error, want one")
	}
	conn.Close()
	c.signal(syscall.SIGTERM)
	c.end(0)
	log := c.stderr()
	written, omitted := 0, 0
	count := regexp.MustCompile(`"of": "audit", "lines": (\d+), "user": "app"`)
	for line := range strings.Lines(log) {
		if strings.Contains(line, `"user": "app", "statement"`) {
			written++
			if len(line) > 2000 {
				t.Errorf("a line of %d bytes: %.300s", len(line), line)
			}
		}
		if found := count.FindStringSubmatch(line); found != nil {
			n, _ := strconv.Atoi(found[1])
			omitted += n
		}
	}
	if written+omitted != tried || omitted == 0 {
		t.Errorf("%d refusals are written, and %d counted, of %d", written, omitted, tried)
	}
	if done := strings.Count(log, "\"statement\": \"CREATE SEQUENCE `made"); done != 150 {
		t.Errorf("%d of 150 statements that were carried out are in the log", done)
	}
	for _, want := range []string{"DROP SEQUENCE `made0`\", \"outcome\": \"done", "DROP SEQUENCE `made1`\", \"outcome\": \"done", "DROP SEQUENCE `nobody`\", \"outcome\": \"failed", "DROP SEQUENCE `made2`\", \"outcome\": \"done"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log has no %s", want)
		}
	}
	if len(log) > 1<<20 {
		t.Errorf("the log has %d bytes", len(log))
	}
}
