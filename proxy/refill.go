package proxy

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
	"seqproxy/statement"
)

// remedy is why a statement with numbers failed, if that can be mended.
type remedy uint8

const (
	noRemedy    remedy = iota
	newNumbers         // somebody has used a number that was not his
	newColumns         // the table's columns are not what they were
	notTheTable        // the table has no such column
	largerBlock        // the server has counted off more than the block has
)

// sendNumbered sends the command in s.scratch, into which its numbers are written, in the place of
// the client's. It relays the answer, unless that is an error for which there is a remedy: the
// server has done nothing then, the client has got nothing, and the command waits to be sent again.
// binary says that it is an execution.
func (r *relay) sendNumbered(c *backend.Conn, n *keys.Numbers, binary bool) (remedy, error) {
	r.at.state.LastAnswer = state.ByServer
	switch {
	case n.Block != nil:
		return r.exchangeCounted(c, n.Block)
	case n.Rows != nil:
		return noRemedy, r.exchangeRows(c, r.scratch, n.Rows, binary)
	case n.Fill != nil && !n.Fill.Several:
		return r.exchangeFilled(c, n.Fill)
	}
	return noRemedy, r.sendScratch(c)
}

// exchangeFilled is exchange for the statement in s.scratch, which is filled in. It is repeated once.
func (r *relay) exchangeFilled(c *backend.Conn, f *plan.Filling) (remedy, error) {
	if err := r.at.client.flush(); err != nil {
		return noRemedy, err
	}
	if f.Fills() {
		r.at.tally.Sends(c, stats.KindRewrite)
	} else {
		r.at.tally.Sends(c, stats.KindRelay)
	}
	_, writeErr := c.Write(r.scratch)
	var first []byte
	if writeErr == nil {
		first = firstPacket(r.at.tally, c)
	}
	if len(first) > 0 && first[0] == 0xff && !f.Repeated {
		var e *protocol.ServerError
		if errors.As(protocol.ParseServerError(first), &e) {
			if can := r.at.shared.columns.remedyFor(e, f); can != noRemedy {
				c.Answer.Begin(protocol.ShapeResult, c.Capabilities)
				n, _ := c.Answer.Walk(c.Buffered()[:protocol.HeaderSize+len(first)])
				noteError(c)
				c.Discard(n)
				r.at.release(c)
				return can, nil
			}
		}
	}
	given := insertedBy(f, first)
	r.batch.drop()
	err := r.awaitAnswers(c, writeErr, []expected{{shape: protocol.AnswerTo(r.scratch[protocol.HeaderSize:])}})
	if err == nil && given > 0 {
		r.at.state.LastID.GivenInOK(given)
		r.at.state.LastID.Inserted = true
	}
	return noRemedy, err
}

// firstPacket waits for the beginning of an answer, and leaves it where it is. It
// returns the payload of the first packet if that is an error or an OK.
func firstPacket(tally *stats.Tally, c *backend.Conn) []byte {
	for {
		b := c.Buffered()
		if len(b) > protocol.HeaderSize {
			size := protocol.PayloadLen(b)
			if b[protocol.HeaderSize] != 0xff && b[protocol.HeaderSize] != 0 {
				return nil
			}
			if len(b) >= protocol.HeaderSize+size {
				payload := b[protocol.HeaderSize : protocol.HeaderSize+size]
				if c.Capabilities.Has(protocol.Progress) && protocol.IsProgress(payload) {
					return nil
				}
				return payload
			}
		}
		if tally.Fill(c) != nil {
			return nil // which whoever relays the answer meets, too
		}
	}
}

// insertedBy returns the number of a row that was given it as it is, if an OK says that
// the row is in the table: then it is LAST_INSERT_ID().
func insertedBy(f *plan.Filling, ok []byte) uint64 {
	k := &f.Keys[0]
	if !k.Plain || len(k.Filled) == 0 || len(ok) < 3 || ok[0] != 0 {
		return 0
	}
	_, n, whole := protocol.ReadLenEncInt(ok[1:])
	if !whole {
		return 0
	}
	if id, _, whole := protocol.ReadLenEncInt(ok[1+n:]); !whole || id != k.First {
		return 0
	}
	return k.First
}

// notTwice are words of texts that are not repeated: the failed attempt has moved what they
// read, or changed what they change beside their row.
const notTwice = statement.ReadsLastInsertID | statement.SetsLastInsertID | statement.SetsUserVariable | statement.UserLock

// remedyFor says what can be done about an error.
func (cc *columnCache) remedyFor(e *protocol.ServerError, f *plan.Filling) remedy {
	k := &f.Keys[0]
	switch e.Code {
	case mysql.ER_DUP_ENTRY:
		// Of several rows some may be in a table without transactions.
		if k.Rows == 1 && len(k.Filled) == 1 && duplicateOf(e.Message, k) && f.Words&notTwice == 0 {
			return newNumbers
		}
	case mysql.ER_WRONG_VALUE_COUNT_ON_ROW, mysql.ER_BAD_FIELD_ERROR, mysql.ER_NO_SUCH_TABLE:
		cc.forget()
		switch {
		case f.ColumnsCached && f.Words&notTwice == 0: // it may be the error of a trigger, too
			return newColumns
		case k.Added && e.Code == mysql.ER_BAD_FIELD_ERROR:
			return notTheTable
		}
	}
	return noRemedy
}

// duplicateOf says whether the message of error 1062 is about the key: in all
// languages the first thing in quotes is the value.
func duplicateOf(message string, k *plan.FilledKey) bool {
	key := strconv.FormatUint(k.First, 10)
	if k.Binding.Texts {
		key = k.Texts[0]
	}
	b := []byte(message)
	from := bytes.IndexByte(b, '\'')
	if from < 0 {
		return false
	}
	b = b[from+1:]
	to := bytes.IndexByte(b, '\'')
	return to >= 0 && string(b[:to]) == key
}

// refill handles the text once more that sendNumbered has found a remedy for.
func (d *delivery) refill(c *backend.Conn, sql []byte, a *plan.Action, r remedy) error {
	switch r {
	case newColumns:
		f, err := d.planning.planFilling(sql, false)
		if err != nil {
			return err
		}
		d.planning.fill = f
	case notTheTable:
		t, k := d.planning.stmt.Table(), &a.Fill.Keys[0]
		of, err := d.planning.askColumns(c, string(sql[t.Start:t.End]))
		if err != nil {
			return err
		}
		same := d.planning.sameColumn(k.Binding.Column)
		if !plan.ContainsName(of.Names, same) {
			d.planning.fill = nil // a table of the same name
		}
	}
	if d.planning.fill != nil {
		d.planning.fill.Repeated = true
	}
	if passOn, err := d.keys(sql); !passOn || err != nil {
		return err
	}
	return d.passOn(sql)
}

// changesTables says whether a statement of a kind may change the columns of a table.
func changesTables(k statement.Kind) bool {
	switch k {
	case statement.OtherDDL, statement.CreateTemporaryTable, statement.CreateStored, statement.DropDatabase, statement.Multi, statement.Other,
		statement.Call, statement.Execute, statement.ExecuteImmediate:
		return true
	}
	return false
}
