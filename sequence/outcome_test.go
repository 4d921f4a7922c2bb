package sequence

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-sql-driver/mysql"

	"seqproxy/sequence/limit"
	"seqproxy/sequence/link"
)

// reserveOnce is one attempt on a server that knows no other.
func reserveOnce(ctx context.Context, v *server, name string, n uint64) (grant, error) {
	did := v.attempt(ctx, []*server{v}, name, n)
	return did.grant, did.err
}

func TestEachOutcomeOfAReservationHasARemedy(t *testing.T) {
	for o, want := range map[outcome]struct {
		do    remedy
		again bool
	}{
		outcomeDone:        {remedyGive, false},
		outcomeConflict:    {remedyRepeat, true},
		outcomeLocked:      {remedyStop, false},
		outcomeDoubtful:    {remedyRepeat, true},
		outcomeUnlisted:    {remedyAwait, true},
		outcomeNewRule:     {remedyPutBack, true},
		outcomeRestarted:   {remedyRepeat, true},
		outcomeWentBack:    {remedyLift, true},
		outcomeNoRoom:      {remedyFit, true},
		outcomeAtCeiling:   {remedyCeiling, true},
		outcomeUnwitnessed: {remedyWitness, true},
		outcomeNotHolder:   {remedyHold, true},
		outcomeMoved:       {remedyMove, true},
		outcomeOldPlan:     {remedyStop, false},
		outcomeFrozen:      {remedyStop, false},
		outcomeNotHome:     {remedyStop, false},
		outcomeForeign:     {remedyStop, false},
		outcomeUnknown:     {remedyStop, false},
		outcomeRefused:     {remedyStop, false},
	} {
		if do, again := next(o, 1); do != want.do || again != want.again {
			t.Errorf("%v: got remedy %d, and another attempt: %v; want %d, %v", o, do, again, want.do, want.again)
		}
		// The last attempt does what helps the next caller, and ends.
		if do, again := next(o, link.MaxAttempts); do != want.do || again {
			t.Errorf("%v at the last attempt: got remedy %d, and another attempt: %v", o, do, again)
		}
		if o.Error() == "" {
			t.Errorf("outcome %d has no text", o)
		}
	}
}

func TestTheOutcomeOfAnErrorIsFound(t *testing.T) {
	single := openWith(t, Options{Servers: []ServerOptions{{Database: "none", Addr: "127.0.0.1:1"}}}).servers.first()
	group := openWith(t, Options{Servers: []ServerOptions{{Database: "none", Nodes: []Node{{Addr: "127.0.0.1:1"}, {Addr: "127.0.0.1:2"}}}}}).servers.first()
	said := func(code uint16) error { return fmt.Errorf("reserve: %w", &mysql.MySQLError{Number: code}) }
	for _, c := range []struct {
		err             error
		single, inGroup outcome
	}{
		{nil, outcomeDone, outcomeDone},
		{fmt.Errorf("%w: nobody answers", outcomeUnwitnessed), outcomeUnwitnessed, outcomeUnwitnessed},
		{said(gomysql.ER_DATA_OUT_OF_RANGE), outcomeNoRoom, outcomeNoRoom},
		{said(gomysql.ER_LOCK_WAIT_TIMEOUT), outcomeLocked, outcomeLocked},
		{said(gomysql.ER_LOCK_DEADLOCK), outcomeConflict, outcomeConflict},
		{&UnfitError{Momentary: true}, outcomeDoubtful, outcomeDoubtful},
		{&UnfitError{}, outcomeRefused, outcomeRefused},
		{driver.ErrBadConn, outcomeRefused, outcomeMoved},
		{link.ErrMoved, outcomeRefused, outcomeMoved},
		{said(gomysql.ER_OPTION_PREVENTS_STATEMENT), outcomeRefused, outcomeMoved},
		{fmt.Errorf("%w: %w", limit.ErrOvertaken, outcomeNotHolder), outcomeNotHolder, outcomeNotHolder},
		{&NameError{Err: ErrUnknown}, outcomeRefused, outcomeRefused},
		{errors.New("another one"), outcomeRefused, outcomeRefused},
	} {
		if got := single.outcomeOf(c.err); got != c.single {
			t.Errorf("%v: got %v, want %v", c.err, got, c.single)
		}
		if got := group.outcomeOf(c.err); got != c.inGroup {
			t.Errorf("%v in a group: got %v, want %v", c.err, got, c.inGroup)
		}
	}
}
