// Package shown writes the proxy's sequences into the questions by which programs look for
// sequences.
//
// Start at [Writer]. MariaDB shows sequences as tables of the type SEQUENCE, and can read one like
// a table. Such a question goes to the server with the proxy's sequences in place of the table that
// it names. So the server works out the answer, which includes its own sequences.
package shown
