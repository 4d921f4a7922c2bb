package proxy_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"seqproxy/protocol"
	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

// NEXTVAL('s') means LAST_INSERT_ID(n). A script runs twice in the same schema of the same server:
// through the proxy, and direct with LAST_INSERT_ID(n) in place of NEXTVAL. Everything that a
// client sees must be equal.
//
// A step is one text. «NEXTVAL('photos')» in it stands for the call through the proxy. Direct
// it stands for LAST_INSERT_ID(n) where it is the first of its text, else for a number of the
// same column. A different direct text follows behind " => ", with {p1}, {p2} ... for the
// numbers of this step from the sequence photos, {o1} ... for those of other. A step
// "direct: text" is sent only direct, with the numbers of the step before, and its answer is
// not compared.
type script struct {
	name  string
	steps []string
}

// scriptStep is one text of a script, ready to be sent.
type scriptStep struct {
	proxied, direct string
	silent          bool // sent only direct, and not compared
}

// oracle runs scripts on an env, whose sequences photos and other it creates.
type oracle struct {
	*env
	// setup runs direct before each run of a script, in the empty schema.
	setup []string
	taps  *shardTaps // nil: no transcripts
	raw   [][]byte   // the packets of the last run's answers
}

// firstNumbers are the first numbers of the oracle's sequences.
var firstNumbers = map[string]uint64{"photos": 1001, "other": 5001}

func newOracle(t *testing.T, s setup, prepare ...string) *oracle {
	t.Helper()
	if s.Servers == nil {
		s.Servers = []*mysqltest.Server{mysqltest.Shared(t)}
	}
	taps := tapShards(t, &s)
	e := newEnv(t, s)
	for name, start := range firstNumbers {
		if _, err := e.Sequences.Create(t.Context(), sequence.CreateOptions{Name: name, Start: start}); err != nil {
			t.Fatal(err)
		}
	}
	return &oracle{env: e, setup: prepare, taps: taps}
}

// ownServer gives s a server that no other test uses, so its statements' ids begin at 1, and the
// test may change its global variables. It need not wait for the disk.
func ownServer(t testing.TB, s setup) setup {
	s.Servers = []*mysqltest.Server{mysqltest.StartUnsynced(t)}
	return s
}

var (
	markedCall  = regexp.MustCompile(`«([^»]*)»`)
	placeholder = regexp.MustCompile(`\{([po])(\d+)\}`)
)

// compile turns steps into texts, with the next numbers of the sequences.
func (o *oracle) compile(t testing.TB, steps []string) []scriptStep {
	t.Helper()
	next := map[string]uint64{"p": o.nextNumber(t, "photos"), "o": o.nextNumber(t, "other")}
	before := map[string]uint64{"p": next["p"], "o": next["o"]}
	compiled := make([]scriptStep, len(steps))
	for i, text := range steps {
		s := &compiled[i]
		if rest, ok := strings.CutPrefix(text, "direct: "); ok {
			s.silent, s.direct, _ = true, fill(rest, before), 0
			continue
		}
		s.proxied, s.direct, _ = strings.Cut(text, " => ")
		if s.direct == "" {
			s.direct = unmark(s.proxied)
		}
		s.proxied = markedCall.ReplaceAllString(s.proxied, "$1")
		before = map[string]uint64{"p": next["p"], "o": next["o"]}
		for _, m := range placeholder.FindAllStringSubmatch(s.direct, -1) {
			n, _ := strconv.ParseUint(m[2], 10, 64)
			next[m[1]] = max(next[m[1]], before[m[1]]+n)
		}
		s.direct = fill(s.direct, before)
	}
	return compiled
}

// unmark replaces marked calls by placeholders.
func unmark(text string) string {
	counts := map[string]int{}
	first := true
	return markedCall.ReplaceAllStringFunc(text, func(call string) string {
		key := "p"
		if strings.Contains(strings.ToLower(call), "other") {
			key = "o"
		}
		counts[key]++
		p := fmt.Sprintf("{%s%d}", key, counts[key])
		if first {
			first = false
			return "LAST_INSERT_ID(" + p + ")"
		}
		// This expression has the column of LAST_INSERT_ID(n).
		return "IF(1,CAST(" + p + " AS UNSIGNED),LAST_INSERT_ID(" + p + "))"
	})
}

// fill replaces placeholders by numbers; first are those of {p1} and {o1}.
func fill(text string, first map[string]uint64) string {
	return placeholder.ReplaceAllStringFunc(text, func(p string) string {
		m := placeholder.FindStringSubmatch(p)
		n, _ := strconv.ParseUint(m[2], 10, 64)
		return strconv.FormatUint(first[m[1]]+n-1, 10)
	})
}

// fresh empties the first shard's schema and sets it up.
func (o *oracle) fresh(t testing.TB) {
	t.Helper()
	schema := o.Schemas[0]
	o.Servers[0].Exec(t, append([]string{"DROP DATABASE " + schema, "CREATE DATABASE " + schema, "USE " + schema}, o.setup...)...)
}

// run runs scripts with every kind of client, or with those that only names.
func (o *oracle) run(t *testing.T, scripts []script, only ...string) {
	clients := []struct {
		name string
		run  func(t *testing.T, proxied bool, steps []scriptStep) []string
	}{
		{"packets with EOF", func(t *testing.T, proxied bool, steps []scriptStep) []string {
			return o.runPackets(t, proxied, steps, allFraming&^(protocol.DeprecateEOF|protocol.SessionTrack))
		}},
		{"packets without EOF", func(t *testing.T, proxied bool, steps []scriptStep) []string {
			return o.runPackets(t, proxied, steps, allFraming)
		}},
		{"go-sql-driver", o.runDriver},
		{"command-line client", o.runCLI},
	}
	test := t.Name()
	for i, s := range scripts {
		t.Run(s.name, func(t *testing.T) {
			o.beginScript(t, i)
			for _, c := range clients {
				if len(only) > 0 && !slices.Contains(only, c.name) {
					continue
				}
				t.Run(c.name, func(t *testing.T) {
					steps := o.compile(t, s.steps)
					o.fresh(t)
					transcribed := o.taps != nil && c.name == clients[0].name
					if transcribed {
						o.taps.begin()
					}
					got := c.run(t, true, steps)
					if transcribed {
						o.transcribe(t, fileName(test, s.name), steps, o.taps.take(t))
					}
					o.fresh(t)
					want := c.run(t, false, steps)
					o.compareRuns(t, steps, got, want)
				})
			}
		})
	}
}

func (o *oracle) compareRuns(t testing.TB, steps []scriptStep, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("answers: got %d, want %d\nproxy:\n%s\ndirect:\n%s", len(got), len(want), strings.Join(got, "\n"), strings.Join(want, "\n"))
		return
	}
	i := 0
	for _, s := range steps {
		if s.silent {
			continue
		}
		if i == len(got) {
			break
		}
		if got[i] != want[i] {
			g, w := differing(got[i], want[i])
			t.Errorf("step %d: %s\ndirect: %s\ngot:\n%s\nwant:\n%s", i+1, s.proxied, s.direct, g, w)
		}
		i++
	}
}

// differing removes the lines that both have.
func differing(got, want string) (string, string) {
	only := func(a, b string) string {
		in := strings.Split(b, "\n")
		var remaining []string
		for line := range strings.SplitSeq(a, "\n") {
			if !slices.Contains(in, line) {
				remaining = append(remaining, line)
			}
		}
		return strings.Join(remaining, "\n")
	}
	return only(got, want), only(want, got)
}

// runPackets returns the answers' bytes, as text.
func (o *oracle) runPackets(t *testing.T, proxied bool, steps []scriptStep, caps protocol.Capability) []string {
	t.Helper()
	addr := o.Servers[0].Addr()
	if proxied {
		addr = o.Addr()
	}
	w := o.Wire(t, addr, wireLogin{Schema: o.Schemas[0], Capabilities: caps})
	defer w.quit()
	var answers []string
	o.raw = nil
	for _, s := range steps {
		if s.silent {
			if !proxied {
				w.query(s.direct)
			}
			continue
		}
		text := s.proxied
		if !proxied {
			text = s.direct
		}
		// No ping in between, because it would reset the status.
		w.send(packet(command(protocol.ComQuery, text)))
		answer := w.receive(protocol.ShapeResult, nil)
		o.raw, answers = append(o.raw, answer), append(answers, describe(answer))
	}
	return answers
}

// quit ends the session with COM_QUIT, so that the server does not count the connection as broken.
func (w *wire) quit() {
	_, _ = w.Write(packet(command(protocol.ComQuit, "")))
	_ = w.Close()
}

// describe returns an answer's packets in a readable form that has every byte.
func describe(answer []byte) string {
	var b strings.Builder
	for len(answer) >= protocol.HeaderSize {
		n := protocol.HeaderSize + protocol.PayloadLen(answer)
		fmt.Fprintf(&b, "  #%d %x %q\n", answer[3], answer[protocol.HeaderSize:n], answer[protocol.HeaderSize:n])
		answer = answer[n:]
	}
	fmt.Fprintf(&b, "%x", answer)
	return b.String()
}

// runDriver returns the answers as go-sql-driver gives them.
func (o *oracle) runDriver(t *testing.T, proxied bool, steps []scriptStep) []string {
	t.Helper()
	open := func() *sql.Conn { return o.DirectConn(t, 0, o.Schemas[0], multi) }
	if proxied {
		open = func() *sql.Conn { return o.Conn(t, o.Schemas[0], multi) }
	}
	c := open()
	defer c.Close()
	var answers []string
	for _, s := range steps {
		if s.silent {
			if !proxied {
				exec(t, c, s.direct)
			}
			continue
		}
		text := s.proxied
		if !proxied {
			text = s.direct
		}
		answers = append(answers, driverAnswer(c, isQuery(s.proxied), text))
	}
	return answers
}

func multi(c *mysql.Config) { c.MultiStatements = true }

// isQuery says whether a program would call Query for a text.
func isQuery(text string) bool {
	text = strings.ToUpper(strings.TrimLeft(text, " \t\n(;"))
	for _, word := range []string{"SELECT", "SHOW", "/*", "--", "EXPLAIN", "WITH", "TABLE", "CALL"} {
		if strings.HasPrefix(text, word) {
			return !strings.Contains(text, " INTO @")
		}
	}
	return false
}

// driverAnswer runs a text, prepared if it has arguments, and returns all that the driver gives.
func driverAnswer(c *sql.Conn, query bool, text string, args ...any) string {
	ctx := context.Background()
	if !query {
		r, err := c.ExecContext(ctx, text, args...)
		if err != nil {
			return driverError(err)
		}
		id, idErr := r.LastInsertId()
		rows, rowsErr := r.RowsAffected()
		return fmt.Sprint("id ", id, idErr, " rows ", rows, rowsErr)
	}
	rows, err := c.QueryContext(ctx, text, args...)
	if err != nil {
		return driverError(err)
	}
	defer rows.Close()
	var b strings.Builder
	for {
		columns, err := rows.ColumnTypes()
		if err != nil {
			return driverError(err)
		}
		for _, column := range columns {
			nullable, ok := column.Nullable()
			length, hasLength := column.Length()
			fmt.Fprintf(&b, "%q %s %v %v %v %v %v; ", column.Name(), column.DatabaseTypeName(), column.ScanType(), nullable, ok, length, hasLength)
		}
		for rows.Next() {
			values, into := make([]any, len(columns)), make([]any, len(columns))
			for i := range values {
				into[i] = &values[i]
			}
			if err := rows.Scan(into...); err != nil {
				return driverError(err)
			}
			fmt.Fprintf(&b, "\n%#v", values)
		}
		if !rows.NextResultSet() {
			break
		}
		b.WriteString("\nnext result: ")
	}
	if err := rows.Err(); err != nil {
		b.WriteString(driverError(err))
	}
	return b.String()
}

func driverError(err error) string {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return fmt.Sprintf("error %d %s %s", e.Number, e.SQLState[:], e.Message)
	}
	return "error " + err.Error()
}

var (
	cliTime   = regexp.MustCompile(` \(\d+\.\d+ sec\)`)
	cliEcho   = regexp.MustCompile(`(?s)--------------\n.*?\n--------------\n`)
	cliAtLine = regexp.MustCompile(`at line \d+`)
)

// runCLI returns the output of the command-line client, split by statements as far as possible: a
// marker stands behind every step.
func (o *oracle) runCLI(t *testing.T, proxied bool, steps []scriptStep) []string {
	t.Helper()
	const mark = "@@@@"
	var input bytes.Buffer
	for _, s := range steps {
		text := s.proxied
		if !proxied {
			text = s.direct
		}
		if s.silent {
			if proxied {
				continue
			}
			// Its output belongs to no step.
			fmt.Fprintf(&input, "\\! echo %sskip\n%s;\n\\! echo %sdone\n", mark, text, mark)
			continue
		}
		io.WriteString(&input, "delimiter //\n"+text+"\n//\ndelimiter ;\n\\! echo "+mark+"\n")
	}
	addr := o.Servers[0].Addr()
	if proxied {
		addr = o.Addr()
	}
	out := o.CLI(t, addr, o.Schemas[0], input.String(), "--unbuffered")
	out = regexp.MustCompile(`(?s)`+mark+`skip\n.*?`+mark+`done\n`).ReplaceAllString(out, "")
	out = cliTime.ReplaceAllString(cliEcho.ReplaceAllString(out, ""), "")
	return strings.Split(cliAtLine.ReplaceAllString(out, ""), mark+"\n")
}
