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

// Bounds of the texts that a session keeps for the log of slow statements until they are answered:
// bytes of one, and of all that its client has sent at a time.
const (
	maxHead  = redact.Longest
	maxHeads = 4 * maxHead
)

// slow keeps what a log line about a slow statement needs. Only the session's goroutine touches it.
// A statement's time begins when it was read, or when the one before it was answered: see
// tally.Mark. If a client sends several at a time, the clock is read only after a wait for a
// server. So the proxy's own time, such as a wait for a number, may count for the next statement.
type slow struct {
	at *attachment

	text   head   // of the last statement
	inHand bool   // the last statement is not finished
	code   uint16 // of the proxy's own error as the last answer; 0: none
	bytes  uint64 // of a server's last answer
	texts  []byte // the beginnings of texts
}

// head is the beginning of a text in slow.texts.
type head struct {
	from, to uint16
	kept     bool // there was room for it
	cut      bool // the text is longer
	read     reading
}

// textHead is the beginning of a prepared statement's text.
type textHead struct {
	text []byte
	cut  bool
	read reading
}

// reading is how a session's texts are read at one moment, and what is unknown about that.
type reading struct {
	mode                                       lex.Mode
	modeUnknown, quotesUnknown, escapesUnknown bool
	mariaDB                                    bool
}

func (w *slow) reading() reading {
	st := w.at.state
	return reading{
		mode: st.Mode, modeUnknown: st.ModeUnknown, quotesUnknown: st.QuotesUnknown, escapesUnknown: st.EscapesUnknown,
		mariaDB: w.at.cur != nil && w.at.cur.Hello.MariaDB,
	}
}

// redact returns what the log may have of a text: nothing if the text can be read in another way,
// too.
func (r reading) redact(text []byte, cut bool) []byte {
	if r.modeUnknown || r.quotesUnknown || r.escapesUnknown {
		st := state.State{Mode: r.mode, ModeUnknown: r.modeUnknown, EscapesUnknown: r.escapesUnknown}
		if st.ReadByMode(text, r.mariaDB) {
			return []byte(redact.NotUnderstood)
		}
	}
	return redact.Append(nil, text, r.mode, cut)
}

// keepsTexts reports whether sessions keep texts until they are answered, for the log of slow
// statements and of unexplained insert ids.
func (s *Settings) keepsTexts() bool {
	b := s.bindings.Load()
	return s.SlowStatement > 0 || b != nil && len(b.tables) > 0
}

// headOf copies the beginning of a text that is about to be prepared.
func (w *slow) headOf(sql []byte) textHead {
	if !w.at.set.keepsTexts() {
		return textHead{}
	}
	n := min(len(sql), maxHead)
	return textHead{append([]byte(nil), sql[:n]...), n < len(sql), w.reading()}
}

// keepText keeps the beginning of a statement that is being handled. more says that the statement
// goes on after text. Callers ask keepsTexts before.
func (r *relay) keepText(text []byte, more bool) {
	r.slow.keep(text, r.slow.reading(), more, r.batch.size == 0)
}

// keepPrepared keeps what the log needs of an execution: whether it explains an insert id, and its
// text.
func (r *relay) keepPrepared(p *prepared) {
	r.explained = p.shape.Explained
	if r.at.set.keepsTexts() {
		r.slow.keep(p.head.text, p.head.read, p.head.cut, r.batch.size == 0)
	}
}

// keep keeps the beginning of a text. first says that nothing waits for its answer.
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

// several reports whether the client has sent more than one statement at a time, so that each has a
// time of its own. more says that one follows the present one.
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
		w.logSlow(took, e.kind, e.text, bytes, c.Shard, c, 0)
	}
}

// timed measures the statement that was sent alone, when its answer of that many bytes has come.
func (r *relay) timed(c *backend.Conn, bytes uint64) {
	r.slow.bytes = bytes
	if r.at.set.SlowStatement > 0 && r.slow.several(r.batch.more()) {
		r.slow.answered(c, &expected{text: r.slow.text, kind: r.at.tally.Kind}, bytes)
	}
}

// round checks whether the last statement was slow, when all are answered or the session ends.
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
	// Only this goroutine changes conns, so it needs no lock.
	w.logSlow(took, kind, w.text, w.bytes, shard, w.at.conns[shard], w.code)
}

// serverFields returns the log fields of who answered, and with which error. here is the code of
// the proxy's own error, or 0. shard is nil if no server was asked, c if its connection is gone.
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

// redacted returns what the log may have of a kept text.
func (w *slow) redacted(text head) []byte {
	if !text.kept {
		return []byte(redact.NotUnderstood)
	}
	return text.read.redact(w.texts[text.from:text.to], text.cut)
}
