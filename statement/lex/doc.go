// Package lex cuts SQL texts into tokens as a server's lexer does, in any sql_mode, character set
// and version. It knows words, quotes and comments, and no statement.
//
// Start at Lexer. Its Next reads one token. Arena gives the meaning of names and strings. Scan
// follows a text that nobody holds as a whole.
package lex
