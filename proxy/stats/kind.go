package stats

// Kind is what became of a client's statement: a text, or an execution of a prepared one
// (of many rows, it is one).
type Kind uint8

// The kinds of statements. What is more than one of them counts for the last of these;
// refused counts for that.
const (
	NoStatement      Kind = iota // it is no statement
	Prepare                      // it is prepared, which counts only if it is refused
	KindRefused                  // answered with an error of the proxy's; also a PREPARE
	KindHere                     // answered here, and none of the following
	KindLastInsertID             // SELECT LAST_INSERT_ID() and its like, answered here
	// numbers given here: SELECT NEXTVAL(...), LASTVAL, SETVAL, tickets
	KindNextval
	KindAdmin // about sequences, or the proxy itself
	KindRelay // passed on as it was
	// passed on in other words: with numbers, keys or ids in it; or numbers were put into its
	// answer
	KindRewrite
	kinds
	unsent = KindRelay // the first kind that servers see
)

// String returns the kind's name in metrics.
func (k Kind) String() string {
	return [kinds]string{"", "", "refused", "own", "last_insert_id", "nextval", "admin", "relay", "rewrite"}[k]
}

// Sent says whether a server sees statements of the kind.
func (k Kind) Sent() bool { return k >= unsent }
