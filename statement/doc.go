// Package statement finds out what a SQL text asks of the proxy: its kind, the words that concern
// session state, and the exact places of the calls that the proxy must answer or replace. It is a
// lexer with a little structure, and no parser. A text that it does not understand is Other and
// goes to the server unchanged.
//
// Start at Statement and its Analyze. Package plan decides which numbers a statement needs.
// Statement.Rewrite puts them into the text and leaves all other bytes as the client sent them.
//
// The packages below know nothing of a Statement: lex splits a text into tokens, ddl has the
// grammar of statements about sequences and to the proxy, idiom recognizes texts of other products
// by their shape, and redact makes texts fit for a log.
//
// The package is pure: no network, no clock, no goroutines, no numbers of its own.
package statement
