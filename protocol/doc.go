// Package protocol handles the bytes of MySQL's client/server protocol: packets, the handshake and
// login of both sides, the proxy's own answers, and the walk through an answer that is only passed
// on.
//
// It knows no policy: no shards, no sequences, no configuration. Start at Conn, the byte stream of
// one connection, and Answer, which finds the end of an answer without decoding it.
//
// The rules come from https://dev.mysql.com/doc/dev/mysql-server/latest/PAGE_PROTOCOL.html and
// https://mariadb.com/kb/en/clientserver-protocol/.
package protocol
