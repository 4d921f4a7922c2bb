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
	"seqproxy/sequence/store"
)

// reserveOnce is one attempt on a server that knows no other.
func reserveOnce(ctx context.Context, v *server, name string, n uint64) (grant, error) {
	did := v.attempt(ctx, []*server{v}, name, n)
	return did.grant, did.Err
}

func TestEachOutcomeOfAReservationHasARemedy(t *testing.T) {
	for o, want := range map[store.Outcome]struct {
		do    remedy
		again bool
	}{
		store.OutcomeDone:        {remedyGive, false},
		store.OutcomeConflict:    {remedyRepeat, true},
		store.OutcomeLocked:      {remedyStop, false},
		store.OutcomeDoubtful:    {remedyRepeat, true},
		store.OutcomeUnlisted:    {remedyAwait, true},
		store.OutcomeNewRule:     {remedyPutBack, true},
		store.OutcomeRestarted:   {remedyRepeat, true},
		store.OutcomeWentBack:    {remedyLift, true},
		store.OutcomeNoRoom:      {remedyFit, true},
		store.OutcomeAtCeiling:   {remedyCeiling, true},
		store.OutcomeUnwitnessed: {remedyWitness, true},
		store.OutcomeNotHolder:   {remedyHold, true},
		store.OutcomeMoved:       {remedyMove, true},
		store.OutcomeOldPlan:     {remedyStop, false},
		store.OutcomeFrozen:      {remedyStop, false},
		store.OutcomeNotHome:     {remedyStop, false},
		store.OutcomeForeign:     {remedyStop, false},
		store.OutcomeUnknown:     {remedyStop, false},
		store.OutcomeRefused:     {remedyStop, false},
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
		single, inGroup store.Outcome
	}{
		{nil, store.OutcomeDone, store.OutcomeDone},
		{fmt.Errorf("%w: nobody answers", store.OutcomeUnwitnessed), store.OutcomeUnwitnessed, store.OutcomeUnwitnessed},
		{said(gomysql.ER_DATA_OUT_OF_RANGE), store.OutcomeNoRoom, store.OutcomeNoRoom},
		{said(gomysql.ER_LOCK_WAIT_TIMEOUT), store.OutcomeLocked, store.OutcomeLocked},
		{said(gomysql.ER_LOCK_DEADLOCK), store.OutcomeConflict, store.OutcomeConflict},
		{&UnfitError{Momentary: true}, store.OutcomeDoubtful, store.OutcomeDoubtful},
		{&UnfitError{}, store.OutcomeRefused, store.OutcomeRefused},
		{driver.ErrBadConn, store.OutcomeRefused, store.OutcomeMoved},
		{link.ErrMoved, store.OutcomeRefused, store.OutcomeMoved},
		{said(gomysql.ER_OPTION_PREVENTS_STATEMENT), store.OutcomeRefused, store.OutcomeMoved},
		{fmt.Errorf("%w: %w", limit.ErrOvertaken, store.OutcomeNotHolder), store.OutcomeNotHolder, store.OutcomeNotHolder},
		{&NameError{Err: ErrUnknown}, store.OutcomeRefused, store.OutcomeRefused},
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
