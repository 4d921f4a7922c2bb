// Package backend knows the MySQL servers behind the proxy: the shards, the schemas on each, what
// the servers offer, and how to log in.
//
// It knows no clients: the caller passes a login's user, password and flags. Start at Shards. Dial
// returns a Conn, which belongs to its caller alone.
package backend
