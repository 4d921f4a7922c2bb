package stats

// Kind is what became of a client's statement: a text, or an execution of a prepared one, with one
// row or many.
type Kind uint8

// The kinds of statements. A statement of several kinds counts for the last of them, and a refused
// one for KindRefused.
const (
	NoStatement      Kind = iota // no statement
	Prepare                      // it is prepared, which counts only if it is refused
	KindRefused                  // answered with an error of the proxy; also a PREPARE
	KindHere                     // answered here, and none of the following
	KindLastInsertID             // SELECT LAST_INSERT_ID() and the like, answered here
	// Numbers given here: SELECT NEXTVAL(...), LASTVAL, SETVAL, tickets.
	KindNextval
	KindAdmin // about sequences, or the proxy itself
	KindRelay // passed on unchanged
	// Passed on with a changed text, which has numbers, keys or ids; or numbers were put into its
	// answer.
	KindRewrite
	kinds
	unsent = KindRelay // the first kind that servers see
)

// String returns the kind's name in metrics.
func (k Kind) String() string {
	return [kinds]string{"", "", "refused", "own", "last_insert_id", "nextval", "admin", "relay", "rewrite"}[k]
}

// Sent reports whether a server sees statements of the kind.
func (k Kind) Sent() bool { return k >= unsent }
