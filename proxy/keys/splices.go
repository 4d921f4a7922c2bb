package keys

import (
	"seqproxy/protocol"
	"seqproxy/proxy/plan"
	"seqproxy/statement"
)

// Substitute sets the values of numbers, and of the previous LAST_INSERT_ID(), in the substitutions
// of a text. A key that is a text cannot be LAST_INSERT_ID(): the statement's next number is it
// instead.
func Substitute(subs []statement.Substitution, calls []statement.FuncCall, values []Number, previous uint64) {
	led := -1 // statement whose first key is a text
	for i := range subs {
		if place := calls[i].Place; place == statement.PlaceNever || place == statement.PlaceRow && subs[i].Replacement != statement.AsLeading {
			continue
		}
		switch calls[i].Func {
		case statement.Nextval, statement.Lastval, statement.Setval:
			v := &values[i]
			switch was := subs[i].Replacement; {
			case v.Text != "":
				if was == statement.AsLastInsertID {
					led = calls[i].Statement
				}
				subs[i] = statement.Substitution{Replacement: statement.AsText, Text: v.Text, Binary: v.Binary}
				continue
			case was == statement.AsCounted:
				subs[i].Bound, subs[i].Step = v.Last, v.Step
			case led == calls[i].Statement && calls[i].Func == statement.Nextval && was != statement.AsLate:
				led = -1
				subs[i].Replacement = statement.AsLastInsertID
			}
			subs[i].Value, subs[i].Null = v.Value, v.Null
		case statement.LastInsertID, statement.LastInsertIDVariable:
			subs[i].Value = previous
		}
	}
}

// Bind gives late substitutions the numbers of their leaders.
func Bind(late []plan.Late, subs []statement.Substitution) error {
	for _, l := range late {
		if subs[l.Leader].Replacement == statement.AsText {
			return protocol.NotSupported("NEXTVAL of a sequence whose keys are texts, and LAST_INSERT_ID(), in one statement that stands behind another is not supported: send it alone")
		}
		subs[l.At].Bound = subs[l.Leader].Value
	}
	return nil
}
