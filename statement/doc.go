// Package statement finds out what a SQL text asks of the proxy: its kind, the
// words in it that touch session state, and the exact places of the calls that
// the proxy must answer or replace. It is a lexer with just enough structure,
// not a parser: what it does not understand is Other and goes to the server as
// it is.
//
// Start at Statement and its Analyze. Statement.Plan works out which numbers a
// statement needs, Statement.Rewrite splices them in; everything else stays
// byte for byte what the client sent.
//
// Below it are rooms that know nothing of a Statement: lex cuts a text into
// tokens, ddl has the grammar of statements about sequences and to the proxy,
// idiom knows texts of other products by their shape, redact makes texts fit for
// a log.
//
// The package is pure: no network, no clock, no goroutines, no numbers of its
// own.
package statement
