package keys

import (
	"seqproxy/proxy/plan"
	"seqproxy/statement"
)

// Substitute gives the substitutions of numbers, and of the previous LAST_INSERT_ID(), in a text
// their values.
func Substitute(subs []statement.Substitution, calls []statement.FuncCall, values []Number, previous uint64) {
	for i := range subs {
		if place := calls[i].Place; place == statement.PlaceNever || place == statement.PlaceRow && subs[i].Replacement != statement.AsLeading {
			continue
		}
		switch calls[i].Func {
		case statement.Nextval, statement.Lastval, statement.Setval:
			subs[i].Value, subs[i].Null = values[i].Value, values[i].Null
		case statement.LastInsertID, statement.LastInsertIDVariable:
			subs[i].Value = previous
		}
	}
}

// Bind gives the substitutions that take effect late the numbers of their leaders.
func Bind(late []plan.Late, subs []statement.Substitution) {
	for _, l := range late {
		subs[l.At].Bound = subs[l.Leader].Value
	}
}
