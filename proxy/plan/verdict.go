package plan

import "fmt"

// Kind says what a plan has come to.
type Kind uint8

// The kinds.
const (
	Go     Kind = iota // the Action is complete
	Asks               // the caller fetches Needs, and makes the plan again
	Refuse             // the client gets an error
)

// Verdict is the outcome of planning.
type Verdict struct {
	Kind    Kind
	Needs   []Need // valid until the next plan
	Refusal Refusal
}

// Why says which error a refusal is.
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

// Refusal is why a statement cannot have what it wants.
type Refusal struct {
	Why  Why
	Text string
	Name []byte // valid until the next plan
	Call int
	// ServerFirst: the server's own error comes first, if it has one at PREPARE.
	ServerFirst bool
}

func refuse(r Refusal) Verdict { return Verdict{Kind: Refuse, Refusal: r} }

// notSupported refuses what the proxy knows and will not do.
func notSupported(format string, args ...any) Verdict {
	return refuse(Refusal{Why: NotSupported, Text: fmt.Sprintf(format, args...)})
}

// notSupportedForm refuses a form of NEXTVAL that cannot be given a number.
func notSupportedForm(form string) Verdict { return refuse(RefusedForm(form)) }

// RefusedForm is the refusal of such a form.
func RefusedForm(form string) Refusal {
	return Refusal{Why: NotSupported, Text: form + " is not supported: take the number with SELECT NEXTVAL('name') first, or write INSERT ... VALUES"}
}
