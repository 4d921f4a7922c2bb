// Package protocol holds the bytes of MySQL's client/server protocol: packets,
// the handshake and logins of both sides, the answers the proxy gives itself,
// and the walk through an answer that is only passed on.
//
// It knows no policy: no shards, no sequences, no configuration. Start at Conn
// (one connection's byte stream) and Answer (where an answer ends, found without
// decoding it).
//
// The rules come from https://dev.mysql.com/doc/dev/mysql-server/latest/PAGE_PROTOCOL.html
// and https://mariadb.com/kb/en/clientserver-protocol/.
package protocol
