package proxy_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"seqproxy/protocol"
)

// FuzzQuestion asks the admin address anything, as text and prepared: there must be one
// answer, and no fault of the proxy, which would end the session.
func FuzzQuestion(f *testing.F) {
	e := newEnv(f, setup{AdminAddress: true, Proxy: withWatcher})
	for _, statements := range asked {
		for _, text := range statements {
			f.Add(text)
		}
	}
	for _, text := range []string{
		"SHOW PROCESSLIST LIKE 'x'", "SHOW VARIABLES WHERE Variable_name IN (?, 'x') AND NOT (Value <> ? OR Value LIKE 'a%')", "SELECT 1 UNION ALL SELECT NULL", "SELECT NOW(), @@port, NULL, 'x'",
		"SELECT COUNT(*) FROM information_schema.TABLES t RIGHT JOIN mysql.x ON 1 WHERE a = ?", "SELECT 1 FROM information_schema.TABLES UNION SELECT 2 FROM mysql.user WHERE 1=0",
		"SELECT *, c.* FROM information_schema.CHARACTER_SETS AS c WHERE MAXLEN = ?", "SHOW GRANTS LIKE 'x'", "SHOW STATUS WHERE 1=0",
		"SELECT ID x, p.* FROM information_schema.PROCESSLIST p ORDER BY x DESC, p.DB, 3 LIMIT ?, 18446744073709551615", "SELECT COUNT(*) FROM information_schema.PROCESSLIST",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<16 {
			return
		}
		w := e.Wire(t, e.AdminAddr(), asWire(watcher))
		ask := func(shape protocol.Shape, cmd protocol.Command, argument string) (answer []byte) {
			if w == nil {
				return nil
			}
			w.send(packet(command(cmd, argument)))
			answer, err := w.tryReceive(shape, nil)
			e.checkFaults(t, text)
			if err != nil || len(answer) < protocol.HeaderSize+1 { // KILL, for one
				w = nil
				return nil
			}
			return answer
		}
		ask(protocol.ShapeResult, protocol.ComQuery, text)
		prepared := ask(protocol.ShapePrepare, protocol.ComStmtPrepare, text)
		if len(prepared) > 0 && prepared[protocol.HeaderSize] == 0 {
			params := int(binary.LittleEndian.Uint16(prepared[protocol.HeaderSize+7:]))
			id := string(prepared[protocol.HeaderSize+1:][:4])
			nulls := string(bytes.Repeat([]byte{0xff}, (params+7)/8))
			if params > 0 {
				nulls += "\x01" + string(bytes.Repeat([]byte(typeString), params))
			}
			ask(protocol.ShapeResult, protocol.ComStmtExecute, id+"\x00\x01\x00\x00\x00"+nulls)
		}
		if w != nil {
			w.ping(text)
		}
		e.Logs.TakeAll()
	})
}
