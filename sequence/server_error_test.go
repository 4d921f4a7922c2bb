package sequence_test

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-sql-driver/mysql"

	"seqproxy/sequence"
	"seqproxy/sequence/limit"
	"seqproxy/sequence/link"
	"seqproxy/sequence/store"
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

// Which errors make a proxy try a reservation again, and which make it try another node of a group.
func TestWhichErrorsAreTriedAgain(t *testing.T) {
	group := sequence.Inside(openWith(t, sequence.Options{Servers: []sequence.ServerOptions{{User: "nobody", Database: "none", Nodes: []sequence.Node{{Addr: "127.0.0.1:1"}, {Addr: "127.0.0.1:2"}}}}})).First()
	single := sequence.Inside(openWith(t, sequence.Options{Servers: []sequence.ServerOptions{{User: "nobody", Database: "none", Addr: "127.0.0.1:1"}}})).First()
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

func TestTheOutcomeOfAnErrorIsFound(t *testing.T) {
	single := sequence.Inside(openWith(t, sequence.Options{Servers: []sequence.ServerOptions{{Database: "none", Addr: "127.0.0.1:1"}}})).First()
	group := sequence.Inside(openWith(t, sequence.Options{Servers: []sequence.ServerOptions{{Database: "none", Nodes: []sequence.Node{{Addr: "127.0.0.1:1"}, {Addr: "127.0.0.1:2"}}}}})).First()
	said := func(code uint16) error { return fmt.Errorf("reserve: %w", &mysql.MySQLError{Number: code}) }
	for _, c := range []struct {
		err             error
		single, inGroup store.Outcome
	}{
		{nil, store.OutcomeDone, store.OutcomeDone},
		{fmt.Errorf("%w: nobody answers", store.OutcomeUnwitnessed), store.OutcomeUnwitnessed, store.OutcomeUnwitnessed},
		{said(gomysql.ER_DATA_OUT_OF_RANGE), store.OutcomeNoRoom, store.OutcomeNoRoom},
		{said(gomysql.ER_LOCK_WAIT_TIMEOUT), store.OutcomeLocked, store.OutcomeLocked},
		{said(gomysql.ER_LOCK_DEADLOCK), store.OutcomeConflict, store.OutcomeConflict},
		{&sequence.UnfitError{Momentary: true}, store.OutcomeDoubtful, store.OutcomeDoubtful},
		{&sequence.UnfitError{}, store.OutcomeRefused, store.OutcomeRefused},
		{driver.ErrBadConn, store.OutcomeRefused, store.OutcomeMoved},
		{link.ErrMoved, store.OutcomeRefused, store.OutcomeMoved},
		{said(gomysql.ER_OPTION_PREVENTS_STATEMENT), store.OutcomeRefused, store.OutcomeMoved},
		{fmt.Errorf("%w: %w", limit.ErrOvertaken, store.OutcomeNotHolder), store.OutcomeNotHolder, store.OutcomeNotHolder},
		{&sequence.NameError{Err: sequence.ErrUnknown}, store.OutcomeRefused, store.OutcomeRefused},
		{errors.New("another one"), store.OutcomeRefused, store.OutcomeRefused},
	} {
		if got := single.OutcomeOf(c.err); got != c.single {
			t.Errorf("%v: got %v, want %v", c.err, got, c.single)
		}
		if got := group.OutcomeOf(c.err); got != c.inGroup {
			t.Errorf("%v in a group: got %v, want %v", c.err, got, c.inGroup)
		}
	}
}
