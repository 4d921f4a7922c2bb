package lex

// Mode is the part of a session's state that changes how the server reads a
// SQL text. It must be the state at the moment the text reaches the server.
// The zero value is a default session in utf8mb4. It has no more than four fields and
// eight bytes: so the compiler keeps it in registers, and lexers are cheap to copy.
type Mode struct {
	SQLMode
	// Charset is the class of character_set_client.
	Charset Charset
	// Server is the one that reads the text.
	Server Server
}

// SQLMode is what sql_mode says of reading.
type SQLMode struct {
	// NoBackslashEscapes: it contains NO_BACKSLASH_ESCAPES, so that a
	// backslash in a string is an ordinary character.
	NoBackslashEscapes bool
	// ANSIQuotes: it contains ANSI_QUOTES (or ANSI, ORACLE, ... which
	// include it), so that "x" is an identifier.
	ANSIQuotes bool
	// Brackets: it contains MSSQL, so that MariaDB takes [x] for an
	// identifier. A text with a bracket is Other then.
	Brackets bool
}
