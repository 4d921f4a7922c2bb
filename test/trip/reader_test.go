package main

import (
	"maps"
	"slices"
	"testing"
)

// TestAReaderStopsAtTheBordersOfOtherRooms counts on a way through three rooms.
func TestAReaderStopsAtTheBordersOfOtherRooms(t *testing.T) {
	c := calls{
		hub + " *session.command":   {hub + " *session.query", "*.Write"},
		hub + " *session.query":     {"statement Analyze", hub + " *session.inHand"},
		"statement Analyze":         {"statement *analyzer.scan", "statement neverRun"},
		"statement *analyzer.scan":  {"statement *analyzer.token"},
		"protocol *Conn.Write":      {"protocol *Conn.writeRaw"},
		"protocol *Conn.writeRaw":   {"protocol *Conn.Write"},
		"statement *analyzer.token": nil,
	}
	functions := []string{
		"protocol/conn.go:1 *Conn.Write",
		"protocol/raw.go:1 *Conn.writeRaw",
		hub + "/query.go:1 *session.query",
		hub + "/session.go:1 *session.command",
		hub + "/session.go:9 *session.inHand",
		"statement/analyze.go:1 Analyze",
		"statement/scan.go:1 *analyzer.scan",
		"statement/scan.go:9 *analyzer.token",
	}
	read, files := c.reader(functions)
	want := []string{"protocol/conn.go:1 *Conn.Write", hub + "/query.go:1 *session.query", hub + "/session.go:1 *session.command", "statement/analyze.go:1 Analyze"}
	if got := slices.Sorted(maps.Keys(read)); !slices.Equal(got, want) {
		t.Errorf("functions read: %q, want %q", got, want)
	}
	if files != 4 {
		t.Errorf("%d files, want 4: those of the functions read, inHand's among them", files)
	}
}

// TestTheCallsOfAPackageAreRead looks for three kinds of calls: of a function, of a method, and
// through an interface.
func TestTheCallsOfAPackageAreRead(t *testing.T) {
	c, err := readCalls(t.Context(), "seqproxy/statement/lex")
	if err != nil {
		t.Fatal(err)
	}
	if to := c["statement/lex *Lexer.Next"]; !slices.Contains(to, "statement/lex plainWord") {
		t.Errorf("Lexer.Next calls %q", to)
	}
	if c, err = readCalls(t.Context(), "seqproxy/proxy"); err != nil {
		t.Fatal(err)
	}
	if to := c["proxy/keys *Taker.run"]; !slices.Contains(to, "*.TakeRun") {
		t.Errorf("Taker.run calls %q", to)
	}
	if to := c["proxy *Server.start"]; !slices.Contains(to, "protocol NewConn") {
		t.Errorf("Server.start calls %q", to)
	}
}
