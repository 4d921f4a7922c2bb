// Package lex splits SQL texts into tokens as a server's lexer does, for any sql_mode, character
// set and version. It knows words, quotes and comments, but no statements.
//
// Start at Lexer. Its Next reads one token. Arena decodes names and strings. Scan follows a text
// that nobody holds as a whole.
package lex
