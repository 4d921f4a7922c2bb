package main

import (
	"fmt"
	"net"
	"path/filepath"

	"seqproxy/internal/mysqld"
)

// welcome prints what was started and what to try. The commands can be copied.
func (p *program) welcome(at addresses, certificate string, h home, servers []*mysqld.Server, members int) {
	p.say(`
A proxy listens on %s, user root, no password. Behind it:
  shard %s  %s  schema %s, the sequence table, and every schema that no shard owns
  shard %s  %s  schema %s
`, at.clients, shardName(0), servers[0].Addr(), exampleSchemas[0], shardName(1), servers[1].Addr(), exampleSchemas[1])
	if members > 1 {
		p.say("The first %d servers divide the numbers of the sequences:\n", members)
		for _, s := range servers[:members] {
			p.say("  sequence server  %s\n", s.Addr())
		}
	}
	p.say("The admin address is %s, for SHOW SEQPROXY HELP and the like, also with every server down.\n", at.admin)
	p.say("Metrics and health: http://%s/\n", at.http)
	if h.kept {
		p.say("The data is kept in %s.\n", h.dir)
	}
	client := "mariadb"
	if path, err := mysqld.FindClient(); err == nil {
		client = filepath.Base(path)
	}
	host, port, err := net.SplitHostPort(at.clients)
	if err != nil { // not with the address of a listener
		host, port = at.clients, "4306"
	}
	login := fmt.Sprintf("%s -h %s -P %s -u root", client, host, port)
	p.say(`
Try it:
  %[1]s
  %[1]s -e "SELECT NEXTVAL('photos')"
  %[1]s album0 -e "INSERT INTO photos VALUES (NEXTVAL('photos'), 'sea'), (NEXTVAL('photos'), 'sky'); SELECT LAST_INSERT_ID()"
  %[1]s album1 -e "ALTER SEQUENCE photos OWNED BY photos.id; INSERT INTO photos (title) VALUES ('star'); SELECT * FROM photos"

For an outage: kill -9 %[3]d, which is %[4]s (%[5]s). Keys go on, and %.0[6]f seconds later the server is started again.
For TLS add --ssl-ca=%[2]s
Ctrl-C stops everything.
`, login, certificate, servers[0].PID(), servers[0].Addr(), holds(0, members), awayFor.Seconds())
}
