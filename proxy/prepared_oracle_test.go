package proxy_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
)

// preparedText is a text to prepare. «NEXTVAL('photos')» in it stands for the call through the
// proxy. Direct it stands for LAST_INSERT_ID(?) where it is the first, else for a parameter with
// the same column, with the number for an argument. A different direct text follows behind " => ",
// with {p} and {o} in the places of those arguments. A question mark that is no parameter is
// written §.
type preparedText struct {
	proxied, direct string
	// params are the direct text's, in order: p and o for numbers, ? for the client's.
	params []byte
}

var directParam = regexp.MustCompile(`\{[po]\}|\?`)

func parsePrepared(text string) preparedText {
	proxied, direct, explicit := strings.Cut(text, " => ")
	if !explicit {
		first := true
		direct = markedCall.ReplaceAllStringFunc(proxied, func(call string) string {
			key := "{p}"
			if strings.Contains(strings.ToLower(call), "other") {
				key = "{o}"
			}
			if first {
				first = false
				return "LAST_INSERT_ID(" + key + ")"
			}
			// This expression has the column of LAST_INSERT_ID(n).
			return "IF(1,CAST(" + key + " AS UNSIGNED),LAST_INSERT_ID(NULL))"
		})
	}
	p := preparedText{proxied: strings.ReplaceAll(markedCall.ReplaceAllString(proxied, "$1"), "§", "?")}
	p.direct = directParam.ReplaceAllStringFunc(direct, func(m string) string {
		p.params = append(p.params, m[len(m)/2])
		return "?"
	})
	p.direct = strings.ReplaceAll(p.direct, "§", "?")
	return p
}

// argument is one parameter of an execution, as bytes.
type argument struct {
	typ   uint16 // with the unsigned flag
	value []byte // nil: NULL
	long  bool   // sent by COM_STMT_SEND_LONG_DATA in two pieces
}

func integer(typ uint8, n int64) argument {
	size := map[uint8]int{mysql.MYSQL_TYPE_TINY: 1, mysql.MYSQL_TYPE_SHORT: 2, mysql.MYSQL_TYPE_YEAR: 2, mysql.MYSQL_TYPE_INT24: 4, mysql.MYSQL_TYPE_LONG: 4, mysql.MYSQL_TYPE_LONGLONG: 8}[typ]
	return argument{typ: uint16(typ), value: binary.LittleEndian.AppendUint64(nil, uint64(n))[:size]}
}

func unsigned(n uint64) argument {
	return argument{typ: uint16(mysql.MYSQL_TYPE_LONGLONG) | 0x8000, value: binary.LittleEndian.AppendUint64(nil, n)}
}

func textArg(typ uint8, s string) argument {
	return argument{typ: uint16(typ), value: protocol.AppendLenEncBytes([]byte{}, s)}
}

func double(f float64) argument {
	return argument{typ: uint16(mysql.MYSQL_TYPE_DOUBLE), value: binary.LittleEndian.AppendUint64(nil, math.Float64bits(f))}
}

func single(f float32) argument {
	return argument{typ: uint16(mysql.MYSQL_TYPE_FLOAT), value: binary.LittleEndian.AppendUint32(nil, math.Float32bits(f))}
}

// moment makes a date or time of the bytes after the length.
func moment(typ uint8, b ...byte) argument {
	return argument{typ: uint16(typ), value: append([]byte{byte(len(b))}, b...)}
}

func null(typ uint8) argument { return argument{typ: uint16(typ)} }

func longData(s string) argument {
	return argument{typ: uint16(mysql.MYSQL_TYPE_LONG_BLOB), value: []byte(s), long: true}
}

// execution makes the payload of COM_STMT_EXECUTE, with types if rebound.
func execution(id uint32, args []argument, rebound bool) []byte {
	b := append([]byte{byte(protocol.ComStmtExecute)}, binary.LittleEndian.AppendUint32(nil, id)...)
	b = append(b, 0, 1, 0, 0, 0)
	return appendArguments(b, unnamed(args), rebound, false)
}

type namedArgument struct {
	name string
	argument
}

func unnamed(args []argument) []namedArgument {
	all := make([]namedArgument, 0, len(args))
	for _, a := range args {
		all = append(all, namedArgument{"", a})
	}
	return all
}

// appendArguments appends the rest of a COM_STMT_EXECUTE. The types have names where
// QueryAttributes was agreed on.
func appendArguments(b []byte, args []namedArgument, rebound, named bool) []byte {
	if len(args) == 0 {
		return b
	}
	nulls := make([]byte, (len(args)+7)/8)
	for i, a := range args {
		if a.value == nil {
			nulls[i/8] |= 1 << (i % 8)
		}
	}
	b = append(b, nulls...)
	if !rebound {
		b = append(b, 0)
	} else {
		b = append(b, 1)
		for _, a := range args {
			b = protocol.Parameter{Type: a.typ, Name: []byte(a.name)}.Append(b, named)
		}
	}
	for _, a := range args {
		if !a.long {
			b = append(b, a.value...)
		}
	}
	return b
}

// preparedPair is a statement prepared through the proxy and direct.
type preparedPair struct {
	o         *oracle
	t         testing.TB
	p         *pair
	text      preparedText
	id        uint32 // at the proxy
	directID  uint32
	announced int // parameters that the proxy announced
}

// prepare prepares on both sides and compares the answers, but for the statement's id.
func (o *oracle) prepare(t testing.TB, p *pair, text string) *preparedPair {
	t.Helper()
	pp := &preparedPair{o: o, t: t, p: p, text: parsePrepared(text)}
	got := p.Proxy.do(protocol.ComStmtPrepare, pp.text.proxied)
	want := p.Direct.do(protocol.ComStmtPrepare, pp.text.direct)
	if want[4] != 0 || got[4] != 0 {
		compare(t, "prepare "+pp.text.proxied, got, want)
		t.Fatalf("prepare %s: refused", pp.text.proxied)
	}
	pp.id, pp.directID = binary.LittleEndian.Uint32(got[5:]), binary.LittleEndian.Uint32(want[5:])
	pp.announced = int(binary.LittleEndian.Uint16(got[11:]))
	binary.LittleEndian.PutUint32(got[5:], 0)
	compare(t, "prepare "+pp.text.proxied, got, pp.withoutNumbers(want))
	return pp
}

// withoutNumbers removes the parameters of numbers from the answer to a PREPARE.
func (pp *preparedPair) withoutNumbers(answer []byte) []byte {
	packets := split(answer)
	var kept []byte
	num := uint8(1)
	keep := func(payload []byte) { kept, num = protocol.AppendPacket(kept, payload, num) }
	params := strings.Count(string(pp.text.params), "?")
	head := packets[0]
	binary.LittleEndian.PutUint32(head[1:], 0)
	binary.LittleEndian.PutUint16(head[7:], uint16(params))
	keep(head)
	for i, kind := range pp.text.params {
		if kind == '?' {
			keep(packets[1+i])
		}
	}
	rest := packets[1+len(pp.text.params):]
	if len(pp.text.params) > 0 && params == 0 && !pp.p.Proxy.caps.Has(protocol.DeprecateEOF) {
		rest = rest[1:] // the EOF after no parameters
	}
	for _, p := range rest {
		keep(p)
	}
	return kept
}

// direct returns the arguments of the direct statement, with the next numbers of the sequences.
func (pp *preparedPair) direct(args []argument) []argument {
	var all []argument
	next := map[byte]uint64{}
	for _, kind := range pp.text.params {
		if kind == '?' {
			all, args = append(all, args[0]), args[1:]
			continue
		}
		if next[kind] == 0 {
			next[kind] = pp.o.nextNumber(pp.t, map[byte]string{'p': "photos", 'o': "other"}[kind])
		}
		all = append(all, unsigned(next[kind]))
		next[kind]++
	}
	return all
}

// execute executes on both sides and compares the answers.
func (pp *preparedPair) execute(rebound bool, args ...argument) {
	pp.t.Helper()
	all := pp.direct(args)
	pp.sendLong(pp.p.Proxy, pp.id, args)
	pp.sendLong(pp.p.Direct, pp.directID, all)
	pp.p.Proxy.send(packet(execution(pp.id, args, rebound)))
	got := pp.p.Proxy.receive(protocol.ShapeResult, nil)
	pp.p.Direct.send(packet(execution(pp.directID, all, rebound)))
	want := pp.p.Direct.receive(protocol.ShapeResult, nil)
	compare(pp.t, fmt.Sprintf("execute %.200s with %d arguments", pp.text.proxied, len(args)), got, want)
}

// executeAndAsk executes three times, with 1, 2 and so on for arguments, and each time reads what
// was left.
func (pp *preparedPair) executeAndAsk() {
	pp.t.Helper()
	args := make([]argument, strings.Count(string(pp.text.params), "?"))
	for i := range args {
		args[i] = integer(mysql.MYSQL_TYPE_LONGLONG, int64(i+1))
	}
	for i := range 3 {
		pp.execute(i == 0 || len(args) == 0, args...)
		pp.p.query(insertIDs)
	}
}

func (pp *preparedPair) sendLong(w *wire, id uint32, args []argument) {
	for i, a := range args {
		if !a.long {
			continue
		}
		for _, piece := range [][]byte{a.value[:len(a.value)/3], a.value[len(a.value)/3:]} {
			w.send(packet(longDataCommand(id, i, piece)))
		}
	}
}

func longDataCommand(id uint32, param int, data []byte) []byte {
	b := append([]byte{byte(protocol.ComStmtLongData)}, binary.LittleEndian.AppendUint32(nil, id)...)
	return append(binary.LittleEndian.AppendUint16(b, uint16(param)), data...)
}

// sameRows runs a query on both sides one after the other, where the schemas differ but not the
// rows.
func (pp *preparedPair) sameRows(query string) {
	pp.t.Helper()
	compareRows(pp.t, pp.p, query)
}

func compareRows(t testing.TB, p *pair, query string) {
	t.Helper()
	_, got := p.Proxy.result(query)
	_, want := p.Direct.result(query)
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("%s: got\n%.2000s\nwant\n%.2000s", query, g, w)
	}
}

// pairOfSchemas logs in through the proxy and direct, in different schemas of the same tables, so
// that the two do not affect each other.
func (o *oracle) pairOfSchemas(t testing.TB, caps protocol.Capability) *pair {
	t.Helper()
	twin := o.Servers[0].Schema(t)
	for _, schema := range []string{o.Schemas[0], twin} {
		o.Servers[0].Exec(t, append([]string{"DROP DATABASE " + schema, "CREATE DATABASE " + schema, "USE " + schema}, o.setup...)...)
	}
	return &pair{
		t:      t,
		Proxy:  o.Wire(t, o.Addr(), wireLogin{Schema: o.Schemas[0], Capabilities: caps}),
		Direct: o.Wire(t, o.Servers[0].Addr(), wireLogin{Schema: twin, Capabilities: caps}),
	}
}

// endings are the two forms of the end of rows.
var endings = map[string]protocol.Capability{
	"with EOF":    allFraming &^ (protocol.DeprecateEOF | protocol.SessionTrack),
	"without EOF": allFraming,
}
