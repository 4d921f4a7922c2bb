package main

import (
	"syscall"
	"testing"

	"seqproxy/test/mysqltest"
)

// A server lets the proxy in, and then answers nothing: init_connect waits. The proxy starts all
// the same, and stops.
func TestAServerThatHangsBehindTheLoginHoldsUpNeitherStartNorStop(t *testing.T) {
	s := mysqltest.StartUnsynced(t)
	s.Exec(t, "CREATE USER plain@'%' IDENTIFIED BY 'secret'", "GRANT SELECT ON *.* TO plain@'%'", "SET GLOBAL init_connect = 'DO SLEEP(600)'")
	p := begin(t, "-config", write(t, "seqproxy.toml", apart+`
connect_timeout = "1s"
drain.timeout = "1s"
[[user]]
name = "plain"
password = "secret"
`+sequencesAt(mysqltest.Shared(t).Addr())+shardAt("photos", s.Addr())))
	p.address()
	p.await("node not usable")
	p.signal(syscall.SIGTERM)
	p.end(0)
}
