// Package shown writes the proxy's sequences into the questions by which programs look for
// sequences.
//
// Start at Writer. MariaDB shows sequences as tables of the type SEQUENCE, and lets one be read
// like a table. Such a question goes to the server with the proxy's sequences written into it, in
// the place of the table that it names. So the server works out the answer, and its own sequences
// are in it.
package shown
