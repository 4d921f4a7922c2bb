package proxy

import "strings"

// Pin is a reason why a session cannot leave its connection: it has something there that
// cannot be brought along to another. A session keeps its connections until it ends in any
// case; with a pin it cannot go on to another shard meanwhile.
type Pin uint8

// The reasons to pin.
const (
	PinTransaction     Pin = iota // a transaction is open
	PinNextTransaction            // SET TRANSACTION was said of the next one
	PinTemporaryTable
	PinUserLock
	PinTableLock
	PinGlobalLock
	PinHandler
	PinSQLPrepare
	PinUserVariable
	PinVariableName
	PinRole
	PinInsertID
	PinTimestamp
	PinRandSeed
	PinPseudoThreadID
	PinOpaque
	pinCount
)

var pinWords = [pinCount]struct{ name, words string }{
	PinTransaction:     {"transaction", "a transaction is open"},
	PinNextTransaction: {"set_transaction", "SET TRANSACTION was said of the next transaction"},
	PinTemporaryTable:  {"temporary_table", "a temporary table was created"},
	PinUserLock:        {"user_lock", "a lock was taken with GET_LOCK"},
	PinTableLock:       {"table_lock", "LOCK TABLES is in force"},
	PinGlobalLock:      {"global_lock", "FLUSH TABLES WITH READ LOCK is in force"},
	PinHandler:         {"handler", "a HANDLER is open"},
	PinSQLPrepare:      {"sql_prepare", "a statement was prepared with PREPARE"},
	PinUserVariable:    {"user_variable", "a user variable was set to something else than a literal"},
	PinVariableName:    {"variable_name", "a user variable was set whose name is not ASCII"},
	PinRole:            {"role", "SET ROLE was used"},
	PinInsertID:        {"insert_id", "the variable insert_id was set"},
	PinTimestamp:       {"timestamp", "the variable timestamp was set"},
	PinRandSeed:        {"rand_seed", "the variable rand_seed1 or rand_seed2 was set"},
	PinPseudoThreadID:  {"pseudo_thread_id", "the variable pseudo_thread_id was set"},
	PinOpaque:          {"opaque", "a statement was run that may have changed anything (CALL, several statements in one, or one not understood)"},
}

// String returns the reason's name in metrics and tables.
func (p Pin) String() string { return pinWords[p].name }

// Words returns the reason as users are told it.
func (p Pin) Words() string { return pinWords[p].words }

// pins is a set of them.
type pins uint32

func (s pins) has(p Pin) bool { return s&(1<<p) != 0 }

// list returns the set's elements; nil if there are none.
func (s pins) list() (list []Pin) {
	for p := range pinCount {
		if s.has(p) {
			list = append(list, p)
		}
	}
	return list
}

func (s pins) words() string {
	var all []string
	for _, p := range s.list() {
		all = append(all, p.Words())
	}
	return strings.Join(all, "; ")
}

// allPins are the pins with those that the status tells of.
func (st *state) allPins() pins {
	p := st.pins
	if st.inTransaction() {
		p |= 1 << PinTransaction
	}
	if st.nextTransaction {
		p |= 1 << PinNextTransaction
	}
	return p
}
