package proxy_test

import (
	"database/sql"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/test/mysqltest"
)

// replica is a server that replicates from an address.
type replica struct {
	*mysqltest.Server
	t testing.TB
}

// replicate makes a new server the replica of the one behind addr, with an account of the env. A
// heartbeat makes the source notice when the replica has gone.
func (e *env) replicate(t testing.TB, addr string, args ...string) *replica {
	t.Helper()
	r := &replica{Server: mysqltest.Start(t, append([]string{"--server-id=2", "--log-bin=replica"}, args...)...), t: t}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	if r.IsMariaDB() {
		r.Exec(t, "SET GLOBAL rpl_semi_sync_slave_enabled = 1",
			fmt.Sprintf("CHANGE MASTER TO MASTER_HOST = '%s', MASTER_PORT = %s, MASTER_USER = '%s', MASTER_PASSWORD = '%s', MASTER_SSL = 0, MASTER_CONNECT_RETRY = 1, MASTER_HEARTBEAT_PERIOD = 0.5", host, port, e.User, e.Password),
			"START SLAVE")
		t.Cleanup(func() { r.Exec(t, "STOP SLAVE") })
		return r
	}
	r.Exec(t, "INSTALL PLUGIN rpl_semi_sync_replica SONAME 'semisync_replica.so'", "SET GLOBAL rpl_semi_sync_replica_enabled = 1",
		fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST = '%s', SOURCE_PORT = %s, SOURCE_USER = '%s', SOURCE_PASSWORD = '%s', SOURCE_SSL = 0, GET_SOURCE_PUBLIC_KEY = 1, SOURCE_AUTO_POSITION = 1, SOURCE_CONNECT_RETRY = 1, SOURCE_HEARTBEAT_PERIOD = 0.5", host, port, e.User, e.Password),
		"START REPLICA")
	t.Cleanup(func() { r.Exec(t, "STOP REPLICA") })
	return r
}

// await waits until a query gives want.
func (r *replica) await(query, want string) {
	r.t.Helper()
	pool := r.DB(r.t, "")
	var got sql.NullString
	var err error
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = pool.QueryRow(query).Scan(&got); err == nil && got.String == want {
			return
		}
	}
	r.t.Fatalf("%s on the replica: got %s, %v, want %s\n%s", query, got.String, err, want, r.status())
}

// status is the replica's own report about its replication.
func (r *replica) status() string {
	show := "SHOW REPLICA STATUS"
	if r.IsMariaDB() {
		show = "SHOW SLAVE STATUS"
	}
	rows, err := r.DB(r.t, "").Query(show)
	if err != nil {
		return err.Error()
	}
	defer rows.Close()
	names, _ := rows.Columns()
	var out strings.Builder
	for rows.Next() {
		values, places := make([]sql.NullString, len(names)), make([]any, len(names))
		for i := range values {
			places[i] = &values[i]
		}
		if err := rows.Scan(places...); err != nil {
			return err.Error()
		}
		for i, name := range names {
			if strings.Contains(name, "Running") || strings.Contains(name, "Error") {
				fmt.Fprintln(&out, name, values[i].String)
			}
		}
	}
	return out.String()
}

// Checklist 23.
func TestAReplicaReplicatesThroughTheProxy(t *testing.T) {
	args := []string{"--log-bin=log", "--server-id=1"}
	gtid := []string{"--gtid-mode=ON", "--enforce-gtid-consistency=ON"}
	probe := mysqltest.Shared(t)
	if probe.IsMariaDB() {
		gtid = nil
	}
	server := mysqltest.Start(t, append(args, gtid...)...)
	e := newEnv(t, setup{Servers: []*mysqltest.Server{server}})
	status, enabled := "Rpl_semi_sync_source_yes_tx", "rpl_semi_sync_source_enabled"
	if server.IsMariaDB() {
		status, enabled = "Rpl_semi_sync_master_yes_tx", "rpl_semi_sync_master_enabled"
	} else {
		server.Exec(t, "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'")
	}
	server.Exec(t, "USE "+e.Schemas[0], "CREATE TABLE t (id INT PRIMARY KEY, a LONGTEXT)")
	r := e.replicate(t, e.Addr(), gtid...)
	server.Exec(t, "SET GLOBAL "+enabled+" = 1")
	// Otherwise commits wait for a replica that is gone.
	t.Cleanup(func() { server.Exec(t, "SET GLOBAL "+enabled+" = 0") })
	count := "SELECT COUNT(*) FROM " + e.Schemas[0] + ".t"
	r.await(count, "0")

	c := e.Conn(t, e.Schemas[0], nil)
	// It exceeds a buffer.
	exec(t, c, "INSERT INTO t SELECT seq, REPEAT('x', 1000) FROM "+server.Numbers(2000))
	r.await(count, "2000")
	for i := range 20 {
		exec(t, c, fmt.Sprintf("INSERT INTO t VALUES (%d, 'one by one')", 10_000+i))
	}
	r.await(count, "2020")
	var name, acknowledged string
	if err := server.DB(t, "").QueryRow("SHOW GLOBAL STATUS LIKE '"+status+"'").Scan(&name, &acknowledged); err != nil {
		t.Fatal(err)
	}
	if acknowledged == "0" {
		t.Errorf("%s: got 0: no transaction was acknowledged\n%s", status, r.status())
	}
	// The proxy's numbers reach the replica like all other values.
	createSequence(t, e, "s")
	exec(t, c, "INSERT INTO t VALUES (NEXTVAL('s') + 50000, 'numbered')")
	r.await("SELECT MAX(id) > 50000 FROM "+e.Schemas[0]+".t", "1")
	// The server goes on in another log.
	server.Exec(t, "FLUSH LOGS")
	exec(t, c, "INSERT INTO t VALUES (20000, 'in the next log')")
	r.await("SELECT a FROM "+e.Schemas[0]+".t WHERE id = 20000", "in the next log")
}

// Checklist 23.
func TestADumpThatTheServerRefusesIsItsError(t *testing.T) {
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) { // it has no binary log
		o.Users = append(o.Users, proxy.User{Name: o.Users[0].Name + "_lesser", Password: "lesser"})
	}})
	createSequence(t, e, "s")
	const (
		dump     = "\x04\x00\x00\x00" + "\x01\x00" + "\x0a\x00\x00\x00" + "log.000001"
		dumpGTID = "\x01\x00" + "\x0a\x00\x00\x00" + "\x00\x00\x00\x00" + "\x04\x00\x00\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00"
	)
	for _, c := range []struct {
		cmd protocol.Command
		arg string
	}{
		{protocol.ComBinlogDump, dump},
		{protocol.ComBinlogDump, ""},
		{protocol.ComBinlogDump, "\x00"},
		{protocol.ComBinlogDumpGTID, dumpGTID},
		{protocol.ComBinlogDumpGTID, ""},
		{protocol.ComTableDump, "\x01a\x01b"},
		{protocol.ComRegisterSlave, "\x00"},
		{protocol.ComRegisterSlave, ""},
	} {
		p := e.Pair(t, 0, wireLogin{})
		var got [2][]byte
		for i, w := range []*wire{p.Proxy, p.Direct} {
			w.send(packet(command(c.cmd, c.arg)))
			for {
				b, err := w.raw()
				if err != nil {
					got[i] = append(got[i], "closed"...) // the connection closes as after any dump
					break
				}
				got[i] = append(got[i], b...)
				if w.send(packet(command(protocol.ComQuery, "SELECT 5"))); b[4] == 0xff {
					a, err := w.tryReceive(protocol.ShapeResult, nil)
					got[i] = append(got[i], a...)
					if err != nil {
						got[i] = append(got[i], "closed"...)
					}
					break
				}
			}
		}
		compare(t, fmt.Sprintf("command %d %q", c.cmd, c.arg), got[0], got[1])
	}

	// A session without the right to dump goes on, and the proxy still handles its statements.
	lesser, password := e.User+"_lesser", "lesser"
	e.Servers[0].Exec(t, fmt.Sprintf("CREATE USER %s@'%%' IDENTIFIED BY '%s'", lesser, password))
	t.Cleanup(func() { e.Servers[0].Exec(t, "DROP USER "+lesser) })
	p := e.Pair(t, 0, wireLogin{User: &lesser, Password: &password})
	for _, cmd := range []protocol.Command{protocol.ComBinlogDump, protocol.ComBinlogDumpGTID, protocol.ComRegisterSlave} {
		p.same(cmd, dump)
		if got := p.Proxy.rows("SELECT NEXTVAL('s') > 0"); got[0] != "1" {
			t.Errorf("a number after command %d: got %s", cmd, got)
		}
	}
}
