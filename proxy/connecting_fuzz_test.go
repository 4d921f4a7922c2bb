package proxy_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"seqproxy/protocol"
)

// FuzzQuestion sends any text to the admin address, as text and prepared. There must be one answer,
// and no fault of the proxy, which would end the session.
func FuzzQuestion(f *testing.F) {
	e := newEnv(f, setup{AdminAddress: true, Proxy: withWatcher})
	for _, a := range readAsked(f) {
		f.Add(a.statement)
	}
	for _, text := range []string{
		"SHOW PROCESSLIST LIKE 'x'", "SELECT 1 UNION ALL SELECT NULL", "SELECT @@port, NULL, 'x', @@global.time_zone", "SELECT ?", "SHOW SEQUENCES LIKE 'x%'", "SHOW SEQPROXY STATUS LIKE 'a_b'",
		"SET NAMES utf8mb4 COLLATE utf8mb4_bin", "SET SESSION TRANSACTION READ ONLY, ISOLATION LEVEL SERIALIZABLE", "SET tx_isolation = @x", "SELECT 1 FROM DUAL LIMIT 2",
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
			if err != nil || len(answer) < protocol.HeaderSize+1 { // KILL may end the session
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
