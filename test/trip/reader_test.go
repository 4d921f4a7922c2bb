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

// TestAReaderSkipsFunctionsThatNoneThatRunsCalls has a way with a function value: a reader who
// follows the calls never comes to it.
func TestAReaderSkipsFunctionsThatNoneThatRunsCalls(t *testing.T) {
	c := calls{
		hub + " *session.command":  {"protocol *Conn.Write"},
		"protocol *Conn.Write":     {"protocol *socket.wait"},
		"protocol newSocket":       {"protocol *socket.tryRead"},
		"protocol *socket.tryRead": {"protocol *socket.wait"},
	}
	functions := []string{
		"protocol/conn.go:1 *Conn.Write",
		"protocol/socket.go:1 *socket.wait",
		"protocol/socket.go:9 *socket.tryRead",
		hub + "/session.go:1 *session.command",
	}
	read, files := c.reader(functions)
	want := []string{"protocol/conn.go:1 *Conn.Write", hub + "/session.go:1 *session.command"}
	if got := slices.Sorted(maps.Keys(read)); !slices.Equal(got, want) || files != 2 {
		t.Errorf("functions read: %q in %d files, want %q in 2", got, files, want)
	}
}

// TestAMethodThatIsNotExportedIsCalledInItsRoom has a way through an interface with such a method.
// A type of another room has a method of that name by chance.
func TestAMethodThatIsNotExportedIsCalledInItsRoom(t *testing.T) {
	c := calls{
		hub + " *session.command":  {"protocol *Conn.Fill", "sequence *Sequences.Take"},
		"protocol *Conn.Fill":      {"protocol *.take"},
		"protocol *socket.take":    {"protocol *Conn.Fill"},
		"sequence *Sequences.Take": {"sequence *Sequences.take"},
		"sequence *Sequences.take": {"sequence *Sequences.Take"},
	}
	functions := []string{
		"protocol/conn.go:1 *Conn.Fill",
		"protocol/socket.go:1 *socket.take",
		hub + "/session.go:1 *session.command",
		"sequence/sequences.go:1 *Sequences.Take",
		"sequence/take.go:1 *Sequences.take",
	}
	read, files := c.reader(functions)
	want := []string{"protocol/conn.go:1 *Conn.Fill", hub + "/session.go:1 *session.command", "sequence/sequences.go:1 *Sequences.Take"}
	if got := slices.Sorted(maps.Keys(read)); !slices.Equal(got, want) || files != 3 {
		t.Errorf("functions read: %q in %d files, want %q in 3", got, files, want)
	}
}

// TestTheCallsOfAPackageAreRead looks for four kinds of calls: of a function, of a method, and
// through an interface with an exported method and one without.
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
	if to := c["protocol *socket.tryRead"]; !slices.Contains(to, "protocol *.take") {
		t.Errorf("socket.tryRead calls %q", to)
	}
}
