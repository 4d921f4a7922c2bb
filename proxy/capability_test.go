package proxy_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/sequence"
)

// capabilityStep is a command of the script that runs with every set of flags. «s» in a text stands
// for NEXTVAL('s') through the proxy, and for LAST_INSERT_ID(n) direct; in a statement to prepare
// for LAST_INSERT_ID(?) with the argument n. «s » has a space before the parenthesis, which must
// mean the same under IGNORE_SPACE.
type capabilityStep struct {
	cmd  protocol.Command
	text string
	args []argument // of a COM_STMT_EXECUTE of the last prepared statement
	file []byte
}

func capabilityScript() [][]capabilityStep {
	text := func(sql string) capabilityStep { return capabilityStep{cmd: protocol.ComQuery, text: sql} }
	prepare := func(sql string) capabilityStep {
		return capabilityStep{cmd: protocol.ComStmtPrepare, text: sql}
	}
	execute := func(args ...argument) capabilityStep {
		return capabilityStep{cmd: protocol.ComStmtExecute, args: args}
	}
	return [][]capabilityStep{
		{text("SELECT 1, 'a', NULL, j FROM t"), text("SELECT nothing"), text("SELECT COUNT (*) FROM t"), text("UPDATE t SET id = id")},
		{text("SELECT 1; SELECT 2"), text("CALL two()"), prepare("CALL two()"), execute()},
		{text("SET time_zone = '+01:00'"), text("SET @@session.sql_mode = 'NO_BACKSLASH_ESCAPES'; SELECT 1"), text("SELECT «s» AS n")},
		{
			{cmd: protocol.ComFieldList, text: "t\x00"},
			{cmd: protocol.ComQuery, text: "LOAD DATA LOCAL INFILE 'x' INTO TABLE u (id)", file: file("1\n2\n")},
		},
		{text("SELECT «s» AS n"), text("SELECT LAST_INSERT_ID(), j FROM t"), text("INSERT INTO u VALUES («s»)"), text("SELECT LAST_INSERT_ID()")},
		{
			prepare("SELECT ? AS x, j FROM t"),
			execute(integer(mysql.MYSQL_TYPE_LONGLONG, 5)), execute(integer(mysql.MYSQL_TYPE_LONGLONG, 6)),
			execute(textArg(mysql.MYSQL_TYPE_VAR_STRING, "seven")),
			{cmd: protocol.ComStmtReset},
		},
		{prepare("SELECT «s» AS n"), execute(), execute()},
		{prepare("INSERT INTO u VALUES («s» + ? * 0)"), execute(integer(mysql.MYSQL_TYPE_LONGLONG, 1)), execute(integer(mysql.MYSQL_TYPE_LONGLONG, 1))},
		// The last step is slow, and the random runs leave it out. MariaDB reports progress at
		// once.
		{text("ALTER TABLE t FORCE, ALGORITHM=COPY"), text("CHECK TABLE m"), text("SELECT «s » AS n"), text("SELECT COUNT(*) FROM t")},
	}
}

// capabilityRun is the script on one connection.
type capabilityRun struct {
	*wire
	proxied bool
	next    uint64 // next number of the sequence
	id      uint32 // id of the last prepared statement
	numbers int    // how many numbers that statement has before the client's parameters
	answers [][]byte
}

func (r *capabilityRun) step(s capabilityStep) {
	r.t.Helper()
	payload := command(s.cmd, s.text)
	var hidden []argument
	switch s.cmd {
	case protocol.ComQuery, protocol.ComStmtPrepare:
		n := strings.Count(s.text, "«")
		text := strings.NewReplacer("«s»", "NEXTVAL('s')", "«s »", "NEXTVAL ('s')").Replace(s.text)
		if !r.proxied {
			value := "?"
			if s.cmd == protocol.ComQuery {
				value = strconv.FormatUint(r.next, 10)
			}
			text = strings.NewReplacer("«s»", "LAST_INSERT_ID("+value+")", "«s »", "LAST_INSERT_ID ("+value+")").Replace(s.text)
		}
		if s.cmd == protocol.ComQuery {
			r.next += uint64(n)
			text = r.prefix() + text
		} else {
			r.numbers = n
		}
		payload = command(s.cmd, text)
	case protocol.ComStmtExecute:
		for range r.numbers {
			if !r.proxied {
				hidden = append(hidden, unsigned(r.next))
			}
			r.next++
		}
		payload = r.execution(append(hidden, s.args...))
	case protocol.ComStmtReset:
		payload = binary.LittleEndian.AppendUint32([]byte{byte(s.cmd)}, r.id)
	}
	r.send(packet(payload))
	answer := r.receive(s.cmd.AnswerShape(), s.file)
	if s.cmd == protocol.ComStmtPrepare && answer[4] == 0 {
		r.id = binary.LittleEndian.Uint32(answer[5:])
		answer = bytes.Clone(answer)
		clear(answer[5:9])
		if r.numbers > 0 { // the client does not see the parameters for numbers
			answer = nil
		}
	}
	r.answers = append(r.answers, answer)
}

// prefix stands before a text: an attribute, where the flags allow one.
func (r *capabilityRun) prefix() string {
	if !r.caps.Has(protocol.QueryAttributes) {
		return ""
	}
	return attributes("trace", "abc';`")
}

// attributes encodes attributes of string type as they stand before a text.
func attributes(pairs ...string) string {
	n := len(pairs) / 2
	b := append([]byte{byte(n), 1}, make([]byte, (n+7)/8)...)
	b = append(b, 1)
	for i := 0; i < len(pairs); i += 2 {
		b = append(b, mysql.MYSQL_TYPE_STRING, 0)
		b = protocol.AppendLenEncBytes(b, pairs[i])
	}
	for i := 0; i < len(pairs); i += 2 {
		b = protocol.AppendLenEncBytes(b, pairs[i+1])
	}
	return string(b)
}

// execution makes COM_STMT_EXECUTE in the agreed form, with an attribute where the flags allow one.
func (r *capabilityRun) execution(args []argument) []byte {
	if !r.caps.Has(protocol.QueryAttributes) {
		return execution(r.id, args, true)
	}
	return attributedExecution(r.id, args, []namedArgument{{"trace", textArg(mysql.MYSQL_TYPE_STRING, "abc';`")}}, true)
}

// attributedExecution is an execution where QueryAttributes was agreed on.
func attributedExecution(id uint32, args []argument, attrs []namedArgument, rebound bool) []byte {
	all := append(unnamed(args), attrs...)
	b := append([]byte{byte(protocol.ComStmtExecute)}, binary.LittleEndian.AppendUint32(nil, id)...)
	b = append(b, protocol.ParameterCountAvailable, 1, 0, 0, 0)
	b = protocol.AppendLenEncInt(b, uint64(len(all)))
	return appendArguments(b, all, rebound, true)
}

// capabilities runs the script with sets of flags, direct and through the proxy.
type capabilities struct {
	*env
	t       *testing.T
	next    uint64
	offered protocol.Capability
	groups  [][]capabilityStep
}

func newCapabilities(t *testing.T) *capabilities {
	e := newEnv(t, setup{})
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE t (id INT, j JSON)", `INSERT INTO t VALUES (1, '{"a": 1}')`,
		"CREATE TABLE u (id BIGINT) ENGINE=MEMORY", "CREATE TABLE m (id INT) ENGINE=MyISAM", "INSERT INTO m VALUES (1), (2)", "CREATE PROCEDURE two() BEGIN SELECT 1 AS a; SELECT 2 AS b; END")
	const first = 1_000_000
	if _, err := e.Sequences.Create(t.Context(), sequence.CreateOptions{Name: "s", Start: first}); err != nil {
		t.Fatal(err)
	}
	p := e.Pair(t, 0, wireLogin{})
	p.Proxy.quit()
	p.Direct.quit()
	return &capabilities{e, t, first, p.Proxy.hello.Greeting.Capabilities, capabilityScript()}
}

// same compares all answers under one set of flags, for all groups of the script or for some.
func (c *capabilities) same(set protocol.Capability, some ...int) {
	c.t.Helper()
	script := []capabilityStep{{cmd: protocol.ComInitDB, text: c.Schemas[0]}}
	for i, g := range c.groups {
		if len(some) == 0 || slices.Contains(some, i) {
			script = append(script, g...)
		}
	}
	set &= c.offered
	l := wireLogin{Capabilities: set&^protocol.PerLogin | protocol.Protocol41}
	if set.Has(protocol.LongPassword) {
		l.Capabilities &^= protocol.Extended // the greeting has no place for them then
	}
	if set.Has(protocol.ConnectWithDB) {
		l.Schema = c.Schemas[0]
	}
	run := func(addr string, proxied bool) *capabilityRun {
		r := &capabilityRun{wire: c.Wire(c.t, addr, l), proxied: proxied, next: c.next}
		defer r.quit()
		for _, s := range script {
			r.step(s)
		}
		r.ping("the script")
		return r
	}
	got, want := run(c.Addr(), true), run(c.Servers[0].Addr(), false)
	if g, w := got.hello, want.hello; g.Capabilities&^protocol.SSL != w.Capabilities&^protocol.SSL || g.Status != w.Status {
		c.t.Errorf("flags %x: agreed on %x, status %x, want %x, %x", uint64(set), uint64(g.Capabilities), g.Status, uint64(w.Capabilities), w.Status)
	}
	c.next = got.next
	compare(c.t, fmt.Sprintf("flags %x: the OK of the login", uint64(set)), got.hello.OK, want.hello.OK)
	for i, s := range script {
		compare(c.t, fmt.Sprintf("flags %x: step %d, %.60q", uint64(set), i, s.text), got.answers[i], want.answers[i])
	}
}

func (c *capabilities) bits() (all []protocol.Capability) {
	for set := c.offered; set != 0; set &= set - 1 {
		all = append(all, 1<<bits.TrailingZeros64(uint64(set)))
	}
	return all
}

// Checklist 3.
func TestEveryCapabilityAloneGivesTheServersBytes(t *testing.T) {
	c := newCapabilities(t)
	c.same(0)
	for _, bit := range c.bits() {
		c.same(bit)
		if t.Failed() {
			return // one difference is enough to read
		}
	}
	c.same(^protocol.LongPassword)
}

// framingFlags change what bytes mean. No server has all of them.
var framingFlags = []protocol.Capability{
	protocol.DeprecateEOF, protocol.SessionTrack, protocol.QueryAttributes, protocol.OptionalMetadata, protocol.MultiStatements,
	protocol.MultiResults, protocol.PSMultiResults, protocol.ConnectWithDB, protocol.Progress, protocol.BulkOperations,
	protocol.ExtendedMetadata, protocol.CacheMetadata, protocol.BulkUnitResults,
}

// Checklist 3.
// Checklist 27.
func TestEveryPairOfFramingCapabilitiesGivesTheServersBytes(t *testing.T) {
	c := newCapabilities(t)
	for i, a := range framingFlags {
		for _, b := range framingFlags[:i] {
			if !c.offered.Has(a | b) {
				continue
			}
			if c.same(a | b); t.Failed() {
				return
			}
		}
	}
}

// Checklist 3.
func TestRandomSetsOfCapabilitiesGiveTheServersBytes(t *testing.T) {
	c := newCapabilities(t)
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("SEQPROXY_TEST_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("SEQPROXY_TEST_SEED=%d", seed)
	random, sets := rand.New(rand.NewPCG(seed, 0)), 1000
	if testing.Short() {
		sets = 200
	}
	for range sets {
		set := protocol.Capability(random.Uint64())
		if random.IntN(4) > 0 {
			set &^= protocol.LongPassword
		}
		if c.same(set, random.IntN(len(c.groups)-1), random.IntN(len(c.groups)-1)); t.Failed() {
			return
		}
	}
}
