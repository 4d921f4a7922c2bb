package session

import (
	"cmp"
	"errors"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
	"seqproxy/statement"
)

// remedy is what lets a failed statement with numbers succeed.
type remedy uint8

const (
	noRemedy    remedy = iota
	newNumbers         // a row already has the number: another client chose it
	newColumns         // the table's columns have changed
	notTheTable        // the table has no such column
	largerBlock        // the statement needs more numbers than the block has
)

// sendNumbered sends the command in the scratch buffer, with its numbers, in place of the client's.
// It relays the answer, unless that is an error with a remedy. With a remedy the server has done
// nothing, the client has got nothing, and the command waits to be sent again. binary says that it
// is an execution.
func (r *relay) sendNumbered(c *backend.Conn, n *keys.Numbers, binary bool) (remedy, error) {
	r.at.state.LastAnswer = state.ByServer
	switch {
	case n.Block != nil:
		return r.exchangeCounted(c, n.Block)
	case n.Rows != nil:
		return noRemedy, r.exchangeRows(c, r.scratch, n.Rows, binary)
	case n.Fill != nil && !n.Fill.Several:
		return r.exchangeFilled(c, n)
	}
	return noRemedy, r.sendOnce(c, n)
}

// restoreInsertID puts the first number of an INSERT into its OK, which is the next packet of c. A
// trigger or a stored function makes servers forget LAST_INSERT_ID(n) there, though not in SQL.
// The OK then has the key of the last row, or 0 without AUTO_INCREMENT. If no row is new, it stays
// as it is. given is the number of a plain value, see insertedBy.
func (r *relay) restoreInsertID(c *backend.Conn, ok []byte, n *keys.Numbers, given uint64) {
	if len(ok) < 3 || ok[0] != 0 {
		return
	}
	rows, size, _ := protocol.ReadLenEncInt(ok[1:])
	id, _, whole := protocol.ReadLenEncInt(ok[1+size:])
	first, lost := n.InsertID, id == 0
	if f := n.Fill; f != nil {
		k := &f.Keys[0]
		first, lost = cmp.Or(given, k.InsertID()), lost || k.Auto
		if f.Words&statement.SetsLastInsertID != 0 { // perhaps for a row that it updates
			lost = lost && k.Updates && k.Rows == 1 && rows == 1 && !r.at.login.Capabilities.Has(protocol.FoundRows)
		}
	}
	if first == 0 || first == id || !lost || rows == 0 || !whole {
		return
	}
	c.Replace(protocol.HeaderSize+len(ok), protocol.AppendOKFor(nil, ok, first, c.Buffered()[3]))
}

// exchangeFilled is sendScratch for a statement with filled keys. Such a statement runs twice at
// most.
func (r *relay) exchangeFilled(c *backend.Conn, n *keys.Numbers) (remedy, error) {
	f := n.Fill
	if err := r.at.client.flush(); err != nil {
		return noRemedy, err
	}
	if f.Fills() || len(n.Slots) > 0 {
		r.at.tally.Sends(c, stats.KindRewrite)
	} else {
		r.at.tally.Sends(c, stats.KindRelay)
	}
	_, writeErr := c.Write(r.scratch)
	var first []byte
	if writeErr == nil {
		first = r.firstPacket(c)
	}
	if len(first) > 0 && first[0] == 0xff && !f.Repeated {
		var e *protocol.ServerError
		if errors.As(protocol.ParseServerError(first), &e) {
			if can := r.at.shared.columns.remedyFor(e, f); can != noRemedy {
				c.Answer.Begin(protocol.ShapeResult, c.Capabilities)
				size, _ := c.Answer.Walk(c.Buffered()[:protocol.HeaderSize+len(first)])
				noteError(c)
				c.Discard(size)
				r.at.release(c)
				return can, nil
			}
		}
	}
	given, lost := insertedBy(f, first, r.at.login.Capabilities.Has(protocol.FoundRows))
	if lost {
		f.Stale = true
		r.at.shared.columns.forget()
	}
	r.restoreInsertID(c, first, n, given)
	r.batch.drop()
	err := r.relayAnswers(c, writeErr, []expected{{shape: protocol.AnswerTo(r.scratch[protocol.HeaderSize:]), text: r.slow.text, kind: r.at.tally.Kind, awaited: true}})
	if err == nil && given > 0 {
		r.at.state.LastID.GivenInOK(given)
		r.at.state.LastID.Inserted = true
	}
	return noRemedy, err
}

// firstPacket waits for the beginning of an answer without consuming it. It returns the payload of
// the first packet if that is an error or an OK.
func (r *relay) firstPacket(c *backend.Conn) []byte {
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
		if r.at.tally.Fill(r.at.client.Conn, c) != nil {
			return nil // relayAnswers meets the same error
		}
	}
}

// insertedBy returns the number of a row that got it as a plain value, if an OK says that the row
// is in the table. LAST_INSERT_ID() is then that number. lost says that the column has no
// AUTO_INCREMENT any more: then the OK shows no number. found says that the server also counts rows
// that an update leaves as they were. Such a row looks like a new one.
func insertedBy(f *plan.Filling, ok []byte, found bool) (given uint64, lost bool) {
	k := &f.Keys[0]
	if !k.Plain || len(k.Filled) == 0 || len(ok) < 3 || ok[0] != 0 {
		return 0, false
	}
	rows, n, whole := protocol.ReadLenEncInt(ok[1:])
	if !whole {
		return 0, false
	}
	switch id, _, whole := protocol.ReadLenEncInt(ok[1+n:]); {
	case !whole:
		return 0, false
	case id == k.First:
		return k.First, false
	case id != 0:
		return 0, false
	case rows == 1 && !(k.Updates && found):
		return k.First, true
	default:
		return 0, rows == 2 // an update, which has the insert id of its row
	}
}

// exchangeCounted is sendScratch for a statement whose numbers the server counts.
func (r *relay) exchangeCounted(c *backend.Conn, n *keys.Block) (remedy, error) {
	r.at.tally.Sends(c, stats.KindRewrite)
	if err := r.at.client.flush(); err != nil {
		return noRemedy, err
	}
	_, writeErr := c.Write(r.scratch)
	payload, err := r.onlyPacket(c)
	if err != nil {
		return noRemedy, err
	}
	size := protocol.HeaderSize + len(payload)
	if n.TooSmall(payload) {
		err := n.Grow()
		c.Discard(size)
		r.at.release(c)
		return largerBlock, err
	}
	mark := len(r.at.client.out)
	r.at.client.out = r.numbers.Answered(r.at.client.out, payload, r.at.client.packetNum, n, idOfConn(c))
	r.noteNotice(c, r.at.client.out[mark:], true)
	c.Discard(size)
	r.batch.drop()
	r.at.state.LastConn = idOfConn(c)
	r.timed(c, uint64(size))
	if err := r.at.client.flush(); err != nil {
		return noRemedy, r.at.abandon(c, err)
	}
	switch {
	case writeErr != nil:
		return noRemedy, r.at.lost(c, writeErr, true)
	case len(c.Buffered()) > 0:
		return noRemedy, r.at.lost(c, errUnasked, true)
	}
	r.at.release(c)
	return noRemedy, nil
}

// onlyPacket waits for an answer of one packet without consuming it. It passes on the progress
// reports before it. client.packetNum is then the packet's number.
func (r *relay) onlyPacket(c *backend.Conn) (payload []byte, err error) {
	partly := false
	for {
		b := c.Buffered()
		if len(b) < protocol.HeaderSize || len(b) < protocol.HeaderSize+protocol.PayloadLen(b) {
			if err := r.at.tally.Fill(r.at.client.Conn, c); err != nil {
				return nil, r.at.lost(c, err, partly)
			}
			continue
		}
		b = b[:protocol.HeaderSize+protocol.PayloadLen(b)]
		payload = b[protocol.HeaderSize:]
		if !c.Capabilities.Has(protocol.Progress) || !protocol.IsProgress(payload) {
			break
		}
		partly = true
		protocol.PutHeader(b, len(payload), r.at.client.packetNum)
		r.at.client.packetNum++
		if err := r.at.client.write(b); err != nil {
			return nil, r.at.abandon(c, err)
		}
		c.Discard(len(b))
	}
	c.Answer.Begin(protocol.ShapeResult, c.Capabilities)
	if len(payload) == protocol.MaxFragment {
		return nil, r.at.lost(c, protocol.ErrMalformed, true)
	}
	whole := c.Buffered()[:protocol.HeaderSize+len(payload)]
	if size, ev := c.Answer.Walk(whole); ev != protocol.Done || size != len(whole) {
		return nil, r.at.lost(c, protocol.ErrMalformed, true)
	}
	noteError(c)
	return payload, nil
}

// exchangeRows sends a statement whose rows get numbers, and relays the answer. binary says that
// the rows are binary.
func (r *relay) exchangeRows(c *backend.Conn, command []byte, rows *keys.Rows, binary bool) error {
	r.at.tally.Sends(c, stats.KindRewrite)
	if err := r.at.client.flush(); err != nil {
		return err
	}
	_, writeErr := c.Write(command)
	r.batch.drop()
	numbers := rows.For(r.numbers, !binary)
	x := rowExchange{r: r, c: c, numbers: numbers, inserts: rows.Inserts, f: protocol.NewFiller(&c.Answer, c.Capabilities, protocol.FillOptions{
		Columns: rows.Columns, Binary: binary, Types: rows.Types, Take: numbers.Take,
	})}
	err := x.relay()
	if types := x.f.Types(); len(types) > 0 {
		rows.Types = types
	}
	if err == nil && writeErr != nil {
		err = r.at.lost(c, writeErr, true) // the client has its whole answer
	}
	return err
}

// notTwice are words of texts that must not run twice: the failed attempt has changed what they
// read, or more than their row.
const notTwice = statement.ReadsLastInsertID | statement.SetsLastInsertID | statement.SetsUserVariable | statement.UserLock

// remedyFor returns what can be done about an error.
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
		case f.ColumnsCached && f.Words&notTwice == 0: // a trigger may raise the same error
			return newColumns
		case k.Added && e.Code == mysql.ER_BAD_FIELD_ERROR:
			return notTheTable
		}
	}
	return noRemedy
}

// duplicateOf reports whether the message of error 1062 is about the key. In all languages the
// value comes first in quotes, and values of several columns have - between them. A wrong guess
// costs a number.
func duplicateOf(message string, k *plan.FilledKey) bool {
	key := strconv.FormatUint(k.First, 10)
	if k.Binding.Texts {
		key = k.Texts[0]
	}
	_, entry, _ := strings.Cut(message, "'")
	entry, _, whole := strings.Cut(entry, "'")
	return whole && strings.Contains("-"+entry+"-", "-"+key+"-")
}
