package plan

import "fmt"

// Kind is the kind of a Verdict.
type Kind uint8

// The kinds.
const (
	Go     Kind = iota // the Action is complete
	Asks               // the caller fetches Needs, and plans again
	Refuse             // the client gets an error
)

// Verdict is the outcome of planning.
type Verdict struct {
	Kind    Kind
	Needs   []Need // valid until the next plan
	Refusal Refusal
}

// Why is the error of a refusal.
type Why uint8

// The reasons.
const (
	Granted         Why = iota
	NotSupported        // 1235, with Text
	UnknownSequence     // 4091, of Name
	NoRight             // 1227, to use the sequence Name
	NotAdmin            // 1227, of the SETVAL at Call
	Unread              // 1235: the text may insert rows, and is not understood to its end
	RanElsewhere        // 1235: the last statement ran on another shard, which the error names
)

// Refusal is why a statement is refused.
type Refusal struct {
	Why  Why
	Text string
	Name []byte // valid until the next plan
	Call int
	// ServerFirst says that the server's own error at PREPARE, if any, comes first.
	ServerFirst bool
}

func refuse(r Refusal) Verdict { return Verdict{Kind: Refuse, Refusal: r} }

// notSupported refuses something with error 1235.
func notSupported(format string, args ...any) Verdict {
	return refuse(Refusal{Why: NotSupported, Text: fmt.Sprintf(format, args...)})
}

// notSupportedForm refuses a form of NEXTVAL that cannot get a number.
func notSupportedForm(form string) Verdict { return refuse(RefusedForm(form)) }

// The way out of a form of NEXTVAL, and that of an INSERT ... SELECT whose rows get numbers.
const (
	outOfForm  = "take the number with SELECT NEXTVAL('name') first, or write INSERT ... VALUES"
	outOfQuery = "leave it out; or make the query a table, as for DISTINCT and UNION, INSERT ... SELECT a FROM (SELECT DISTINCT a FROM t) AS q; or write INSERT ... VALUES"
)

// RefusedForm returns the refusal of a form of NEXTVAL.
func RefusedForm(form string) Refusal {
	return Refusal{Why: NotSupported, Text: form + " is not supported: " + outOfForm}
}
