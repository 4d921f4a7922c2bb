package sequence

import (
	"fmt"
	"testing"

	"github.com/go-sql-driver/mysql"

	"seqproxy/sequence/link"
)

// The first reservation of each connection ends as a deadlock: it is made again, and nobody
// notices.
func TestADeadlockIsTriedAgain(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	p.exec(t, "CREATE TRIGGER unlucky BEFORE UPDATE ON sequence FOR EACH ROW IF @been IS NULL THEN SET @been = 1; "+
		"SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'Deadlock found when trying to get lock'; END IF")
	s := p.open(t)
	wantTaken(t, s, "photos", 1, 2)
	if got := s.Stats(); got.Retries == 0 || got.Waits != 1 {
		t.Errorf("got %+v, want that the reservation was tried again, and that one call waited for it", got)
	}
}

// What has a reservation be made again, and what has it be made on another node of a group.
func TestWhichErrorsAreTriedAgain(t *testing.T) {
	group := openWith(t, Options{Servers: []ServerOptions{{User: "nobody", Database: "none", Nodes: []Node{{Addr: "127.0.0.1:1"}, {Addr: "127.0.0.1:2"}}}}}).servers.first()
	single := openWith(t, Options{Servers: []ServerOptions{{User: "nobody", Database: "none", Addr: "127.0.0.1:1"}}}).servers.first()
	for code, want := range map[uint16]struct{ conflict, moved bool }{
		1213: {conflict: true}, // deadlock
		1205: {conflict: true}, // lock wait timeout
		1020: {conflict: true}, // MariaDB: changed since last read
		1290: {moved: true},    // read_only
		1836: {moved: true},    // read-only mode
		1047: {moved: true},    // Galera: no cluster
		1146: {}, 1142: {}, 1264: {}, 1690: {},
	} {
		err := fmt.Errorf("reserve: %w", &mysql.MySQLError{Number: code})
		if got := link.IsConflict(err); got != want.conflict {
			t.Errorf("%d: a conflict: %v", code, got)
		}
		if got := group.IsMoved(err); got != want.moved {
			t.Errorf("%d: another node of a group is looked for: %v", code, got)
		}
		if single.IsMoved(err) {
			t.Errorf("%d: a single server has no other node", code)
		}
	}
}
