package plan

import (
	"seqproxy/proxy/state"
	"seqproxy/statement"
)

// Modes returns what the server does with keys in the session. Unasked says that the server has to
// be asked, and No that this would change what a statement with these words reads.
func Modes(s *state.State, conn state.ConnID, words statement.Words) (state.InsertModes, Answer) {
	switch {
	case s.Inserts.Conn == conn && s.Inserts.Version == max(s.Sysvars["auto_increment_increment"], s.Sysvars["sql_mode"]):
		return s.Inserts, Yes
	case words&statement.ReadsCounts != 0:
		return s.Inserts, No
	}
	return s.Inserts, Unasked
}

// ReadsLast: to ask the server would change what the statement reads.
const ReadsLast = "an INSERT into a table with a bound column that reads what the last statement left (ROW_COUNT(), FOUND_ROWS(), warnings) " +
	"is not supported: keep that in a variable first"

// modes is Modes for the text; is says that they are known.
func (t *filling) modes() (m state.InsertModes, is bool, _ Verdict) {
	m, answer := Modes(t.s, t.f.Conn, t.st.ReadsOfLast())
	switch answer {
	case Unasked:
		t.askOnce(Need{What: NeedModes})
	case No:
		return m, false, notSupported("%s", ReadsLast)
	}
	return m, answer == Yes, Verdict{}
}

// setInText refuses an INSERT whose key depends on what the same text sets before.
func setInText(b *Binding) Verdict {
	return notSupported("INSERT into %s, whose column %s is filled from sequence %s, with 0 or several rows behind a SET of sql_mode or auto_increment_increment "+
		"in one text is not supported: send the SET alone", b.Table, b.Column, b.Sequence)
}
