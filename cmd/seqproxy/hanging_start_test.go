package main

import (
	"syscall"
	"testing"

	"seqproxy/test/mysqltest"
)

// A server lets the proxy in, and then answers nothing: init_connect waits. The proxy starts all the
// same, and stops.
func TestAServerThatHangsBehindTheLoginHoldsUpNeitherStartNorStop(t *testing.T) {
	s := mysqltest.StartUnsynced(t)
	s.Exec(t, "CREATE USER plain@'%' IDENTIFIED BY 'secret'", "GRANT SELECT ON *.* TO plain@'%'", "SET GLOBAL init_connect = 'DO SLEEP(600)'")
	account(t, "hanging", "ALL ON seqproxy.*")
	p := begin(t, "-config", write(t, "seqproxy.toml", `
listen = "127.0.0.1:0"
admin.listen = ""
http.listen = ""
connect_timeout = "1s"
drain.timeout = "1s"
[[user]]
name = "plain"
password = "secret"
[[sequence.server]]
address = "`+mysqltest.Shared(t).Addr()+`"
user = "hanging"
password = "secret"
[[shard]]
name = "photos"
[[shard.node]]
address = "`+s.Addr()+`"
`))
	p.address()
	p.await("node not usable")
	p.signal(syscall.SIGTERM)
	p.end(0)
}
