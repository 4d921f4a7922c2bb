package session

import (
	"time"

	"go.uber.org/zap"

	"seqproxy/backend"
	"seqproxy/internal/logfield"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
	"seqproxy/statement/lex"
	"seqproxy/statement/redact"
)

// Bounds of what a session keeps of texts, for the log of slow statements, until they are
// answered: of one, and of all that its client has sent at a time.
const (
	maxHead  = redact.Longest
	maxHeads = 4 * maxHead
)

// slow is what a session keeps of the statements in hand, in case they prove slow. Only its
// goroutine touches it. A statement takes from when it was read, or the one before it was answered:
// see tally.Mark. Where a client has sent several at a time the clock is read only where a server
// was waited for, so the proxy's own time, such as a wait for a number, may count for the one
// behind.
type slow struct {
	at *attachment

	text   head   // of the last that was taken
	inHand bool   // a statement was taken and is not done with
	code   uint16 // of the error of the proxy's own that the last was answered with; 0 if with none
	bytes  uint64 // of the last answer of a server
	texts  []byte // the beginnings of texts
}

// head is the beginning of a text in slow.texts.
type head struct {
	from, to uint16
	kept     bool // there was room for it
	cut      bool // the text is longer
	read     reading
}

// textHead is the beginning of the text of a prepared statement.
type textHead struct {
	text []byte
	cut  bool
	read reading
}

// reading is how a session's texts are read at one moment, and what is not known of it.
type reading struct {
	mode                                       lex.Mode
	modeUnknown, quotesUnknown, escapesUnknown bool
	mariaDB                                    bool
}

func (w *slow) reading() reading {
	st := w.at.state
	return reading{
		mode: st.Mode, modeUnknown: st.ModeUnknown, quotesUnknown: st.QuotesUnknown, escapesUnknown: st.EscapesUnknown,
		mariaDB: w.at.cur != nil && w.at.cur.Hello().MariaDB,
	}
}

// redact returns what may be logged of a text: nothing if it could be read in another way, too.
func (r reading) redact(text []byte, cut bool) []byte {
	if r.modeUnknown || r.quotesUnknown || r.escapesUnknown {
		st := state.State{Mode: r.mode, ModeUnknown: r.modeUnknown, EscapesUnknown: r.escapesUnknown}
		if st.ReadByMode(text, r.mariaDB) {
			return []byte(redact.NotUnderstood)
		}
	}
	return redact.Append(nil, text, r.mode, cut)
}

// keepsTexts reports whether texts are kept until they are answered: in case they are slow, or have
// an insert id that they do not explain.
func (s *Settings) keepsTexts() bool {
	if s.SlowStatement > 0 {
		return true
	}
	b := s.bindings.Load()
	return b != nil && len(b.tables) > 0
}

// headOf copies the beginning of a text that is about to be prepared.
func (w *slow) headOf(sql []byte) textHead {
	if !w.at.set.keepsTexts() {
		return textHead{}
	}
	n := min(len(sql), maxHead)
	return textHead{append([]byte(nil), sql[:n]...), n < len(sql), w.reading()}
}

// keepText keeps the beginning of a statement that begins to be handled, where texts are kept.
// more: text is only its beginning.
func (r *relay) keepText(text []byte, more bool) {
	r.slow.keep(text, r.slow.reading(), more, r.batch.size == 0)
}

// keepPreparedText is keepText for an execution.
func (r *relay) keepPreparedText(p *prepared) {
	r.explained = p.shape.Explained
	if r.at.set.keepsTexts() {
		r.slow.keep(p.head.text, p.head.read, p.head.cut, r.batch.size == 0)
	}
}

// keep keeps the beginning of a text. first: nothing waits for its answer.
func (w *slow) keep(text []byte, read reading, more, first bool) {
	if first {
		w.texts, w.bytes = w.texts[:0], 0
	}
	w.inHand, w.text, w.code = true, head{}, 0
	n := min(len(text), maxHead)
	if from := len(w.texts); n > 0 && from+n <= maxHeads {
		w.texts = append(w.texts, text[:n]...)
		w.text = head{from: uint16(from), to: uint16(from + n), kept: true, cut: more || n < len(text), read: read}
	}
}

// several reports whether the client has sent more than one statement at a time, so that the time
// of each is measured. more: one comes behind the present one.
func (w *slow) several(more bool) bool {
	n := w.at.tally.Round
	if w.at.tally.Kind != stats.NoStatement {
		n++
	}
	return n > 1 || more
}

// answered measures one of several statements that a server has answered after a wait.
func (w *slow) answered(c *backend.Conn, e *expected, bytes uint64) {
	now := stats.Clock()
	took := now - w.at.tally.Mark
	w.at.tally.Mark = now
	if e.text.kept && took >= w.at.set.SlowStatement {
		w.logSlow(took, e.kind, e.text, bytes, c.Shard(), c, 0)
	}
}

// timed measures the statement in hand, which was sent alone, when its answer of so many bytes has
// come.
func (r *relay) timed(c *backend.Conn, bytes uint64) {
	r.slow.bytes = bytes
	if r.at.set.SlowStatement > 0 && r.slow.several(r.batch.more()) {
		r.slow.answered(c, &expected{text: r.slow.text, kind: r.at.tally.Kind}, bytes)
	}
}

// round looks, when all statements in hand are answered or the session ends, whether
// the last of them was slow.
func (w *slow) round(now time.Duration) {
	if !w.inHand {
		return
	}
	w.inHand = false
	took := now - w.at.tally.Mark
	if limit := w.at.set.SlowStatement; limit > 0 && took >= limit {
		w.logLast(took)
	}
	if cap(w.texts) > maxKept {
		w.texts, w.text = nil, head{}
	}
}

// logLast logs the last statement.
func (w *slow) logLast(took time.Duration) {
	kind, shard := w.at.tally.Last, w.at.tally.LastSentTo
	if !kind.Sent() {
		shard = nil
	}
	// only this goroutine changes them
	w.logSlow(took, kind, w.text, w.bytes, shard, w.at.conns[shard], w.code)
}

// serverFields say who has answered, and with which error if it was one: here if that is
// not 0. shard is nil if nobody was asked, c if the connection is gone.
func serverFields(shard *backend.Shard, c *backend.Conn, here uint16) (fields []zap.Field) {
	code := here
	if shard != nil {
		fields = append(fields, logfield.Shard(shard.Name()))
	}
	if c != nil {
		fields = append(fields, logfield.Node(c.Node()))
		if code == 0 {
			code = c.Answer.ErrCode
		}
	}
	if code != 0 {
		fields = append(fields, logfield.Code(code))
	}
	return fields
}

// logSlow logs a statement that took long.
func (w *slow) logSlow(took time.Duration, kind stats.Kind, text head, bytes uint64, shard *backend.Shard, c *backend.Conn, here uint16) {
	name := kind.String()
	if kind == stats.Prepare {
		name = "prepare"
	}
	w.at.log().Warn("slow statement", append(serverFields(shard, c, here), logfield.Kind(name), logfield.Duration(took), logfield.Bytes(bytes),
		zap.ByteString(logfield.NameStatement, w.redacted(text)))...)
}

// redacted returns what may be logged of a text that is kept, if it is.
func (w *slow) redacted(text head) []byte {
	if !text.kept {
		return []byte(redact.NotUnderstood)
	}
	return text.read.redact(w.texts[text.from:text.to], text.cut)
}
