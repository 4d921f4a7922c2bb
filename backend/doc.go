// Package backend knows the MySQL servers behind the proxy: which shards there
// are, which schema is on which, what their servers offer, and how to log in.
//
// It knows no clients: a login's user, password and flags are handed in. Start at
// Shards; Dial gives a Conn, which belongs to its caller alone.
package backend
