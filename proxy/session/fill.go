package session

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/internal/logfield"
	"seqproxy/protocol"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/stats"
	"seqproxy/statement"
)

// beginFilling plans what of a text with bound tables is filled in: fill is set, and to be reset by
// the caller, or the text to go on with is another, of query, and analysed.
func (p *planning) beginFilling(sql []byte, prepared bool) (query *plan.FilledQuery, text []byte, err error) {
	f, err := p.planFilling(sql, prepared)
	if err != nil {
		return nil, nil, err
	}
	if f != nil && f.Query != nil {
		p.stmt.Analyze(f.Query.Text, p.state.Mode)
		return f.Query, f.Query.Text, nil
	}
	p.fill = f
	return nil, sql, nil
}

// planFilling finds out what of the text just analysed has to be filled in; nil is
// nothing. It asks the server what it has to know for that.
func (p *planning) planFilling(sql []byte, prepared bool) (*plan.Filling, error) {
	at := plan.Now
	if prepared {
		at = plan.AtPrepare
	}
	if err := p.factsOfTables(at); err != nil {
		return nil, err
	}
	for round := 0; ; round++ {
		f, v := p.planner.Fill(&p.stmt, sql, p.state)
		if again, err := p.meet(&v, round, sql); !again {
			return f, err
		}
	}
}

// factsOfTables is factsFor where it matters what is bound in tables, on the server that the text
// goes to.
func (p *planning) factsOfTables(at plan.Moment) error {
	if err := p.ownersUnknown(); err != nil {
		return err
	}
	c, err := p.at.Attach()
	if err != nil {
		return err
	}
	f := p.factsFor(at)
	f.Conn, f.Folds, f.Bulk = idOfConn(c), c.Hello().FoldsTables, p.at.login.Capabilities.Has(protocol.BulkOperations)
	if b := p.at.set.bound(); b != nil {
		f.Bound = b.tables
	}
	return nil
}

// refusedQuery names the column in an error of the kind "not supported".
func refusedQuery(b *plan.Binding, err error) error {
	var refused *protocol.ServerError
	if !errors.As(err, &refused) || refused.Code != mysql.ER_NOT_SUPPORTED_YET {
		return err
	}
	return protocol.NotSupported("%s", plan.RefusedQuery(b, strings.TrimPrefix(refused.Message, "seqproxy: ")))
}

// boundTables reports whether the text just analysed has an INSERT or REPLACE into a
// table with a bound column, as far as the name tells, or that is not known yet.
func (p *planning) boundTables() bool {
	if p.at.routes.Default() == nil {
		return false
	}
	var bound *bindings
	for i := range p.stmt.Tables {
		t := &p.stmt.Tables[i]
		if t.Kind == statement.Update {
			continue
		}
		if bound == nil {
			if p.at.set.owners.Owners() == nil && p.ownersUnknown() != nil {
				return true // planFilling tells the client
			}
			if bound = p.at.set.bound(); bound == nil {
				return false
			}
		}
		if len(bound.tables.Named(t.Name)) > 0 || !ascii(t.Name) {
			return true
		}
	}
	return false
}

// binding returns what is bound in a table of the current shard, or nil.
func (p *planning) binding(t *statement.TableRef) (*plan.Binding, error) {
	if err := p.factsOfTables(plan.Now); err != nil {
		return nil, err
	}
	for round := 0; ; round++ {
		b, v := p.planner.Bound(t, &p.stmt, p.state)
		if v.Refusal.Why == plan.Unread {
			return nil, errUnread // the text is not held, and cannot be shown to the server
		}
		if again, err := p.meet(&v, round, nil); !again {
			return b, err
		}
	}
}

// askSchema asks for the current schema.
func (b *backends) askSchema() error {
	row, err := b.AskRow(b.cur, "SELECT DATABASE()", 1, "the current schema")
	if err != nil {
		return err
	}
	b.state.Schema, b.state.SchemaUnknown = string(row[0]), false
	return nil
}

// boundHere reports whether a column on the current shard is filled from a sequence, or that is
// not known yet.
func (f *facts) boundHere() bool {
	if f.at.routes.Default() == nil {
		return false
	}
	if f.ownersUnknown() != nil {
		return true
	}
	return f.at.set.bound().bindsOn(f.at.routes.ForSchema(f.state.Schema), f.at.routes)
}

// unreadRows answers a text that could bring rows in and is not read to its end, on a shard with
// bound columns: the server would make the keys itself. The error is the server's if it does not
// take the text at all.
func (p *planning) unreadRows(sql []byte) error {
	if err := p.ownersUnknown(); err != nil {
		return err
	}
	if !p.severalIn(sql) {
		c, err := p.at.Attach()
		if err != nil {
			return err
		}
		var refused *protocol.ServerError
		if err := p.relay.tryPrepare(c, sql); err != nil && !(errors.As(err, &refused) && refused.Code == mysql.ER_UNSUPPORTED_PS) {
			return err
		}
	}
	return errUnread
}

var errUnread = protocol.NotSupported("a text that may insert rows and is not understood to its end is not supported where columns are filled from sequences (OWNED BY or [[bind]]): " +
	"write INSERT, REPLACE or LOAD DATA as a statement of its own, without control characters and in utf8mb4")

// severalIn reports whether a server may take a text for more than one statement.
func (f *facts) severalIn(sql []byte) bool {
	return f.severalAgreed() && bytes.IndexByte(bytes.TrimRight(sql, "; \t\n\v\f\r\x00"), ';') >= 0
}

// mayBringRows reports whether the text just analysed could put rows into tables that are not
// known. That matters where boundHere says so.
func (p *planning) mayBringRows(sql []byte) bool {
	st := &p.stmt
	return st.Words&statement.MayBringRows != 0 && (st.Kind != statement.CreateStored || p.severalIn(sql))
}

// meetOwners is awaitOwners if the text just analysed may put rows into tables.
func (p *planning) meetOwners(sql []byte) {
	if p.at.routes.Default() == nil {
		return
	}
	into := func(t statement.TableRef) bool { return t.Kind != statement.Update }
	if slices.ContainsFunc(p.stmt.Tables, into) || p.mayBringRows(sql) {
		p.awaitOwners()
	}
}

// awaitOwners waits, before the first INSERT, until it is known which columns own a sequence, or the
// sequence server does not answer in time; that counts among what the command has waited.
func (f *facts) awaitOwners() {
	shared, owners := f.at.shared, f.at.set.owners
	if owners.Owners() != nil {
		return
	}
	begun := stats.Clock()
	defer func() { f.numbers.Patience.Spend(stats.Clock() - begun) }()
	shared.ownersAsked.Do(func() {
		if _, err := owners.LoadOwners(context.Background()); err != nil {
			shared.ownersUnknown.Store(protocol.Errorf(mysql.ER_UNKNOWN_ERROR, "HY000", "seqproxy: whether a column of this table is filled from a sequence (OWNED BY) is not known yet, "+
				"and INSERT and REPLACE wait for that where there are several shards: %s", strings.TrimPrefix(forClient(err).Message, "seqproxy: ")))
			shared.Log.Warn("owned columns not known yet", logfield.Err(err))
		}
	})
}

// ownersUnknown is an error as long as it is not known, in spite of awaitOwners, which columns own a
// sequence, where there are several shards, whose servers could generate the same keys. With one
// shard the configuration alone counts then.
func (f *facts) ownersUnknown() error {
	unknown := f.at.shared.ownersUnknown.Load()
	if unknown == nil || !f.at.routes.Many() || f.at.set.owners.Owners() != nil {
		return nil
	}
	return unknown
}
