package lex

// Mode is the part of a session's state that changes how a server reads a SQL text. It must be the
// state when the text reaches the server. The zero value is a default session in utf8mb4. With four
// fields and eight bytes at most, the compiler keeps it in registers, and lexers are cheap to copy.
type Mode struct {
	SQLMode
	// Charset is the class of character_set_client.
	Charset Charset
	// Server is the server that reads the text.
	Server Server
}

// SQLMode is the part of sql_mode that concerns reading.
type SQLMode struct {
	// NoBackslashEscapes: sql_mode has NO_BACKSLASH_ESCAPES. A backslash in a string is an ordinary
	// character.
	NoBackslashEscapes bool
	// ANSIQuotes: sql_mode has ANSI_QUOTES, or a mode that includes it (ANSI, ORACLE, ...). "x" is
	// an identifier.
	ANSIQuotes bool
	// Brackets: sql_mode has MSSQL. MariaDB takes [x] for an identifier. A text with a bracket is
	// Other then.
	Brackets bool
}
