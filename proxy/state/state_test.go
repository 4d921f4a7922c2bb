package state

import (
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/statement"
	"seqproxy/statement/lex"
)

// analysed returns the analysis of a text.
func analysed(text string) *statement.Statement {
	var s statement.Statement
	s.Analyze([]byte(text), lex.Mode{Charset: lex.UTF8})
	return &s
}

// ran records a statement in a session's state, with the code of the server's answer.
func (st *State) ran(text string, code uint16) {
	s := analysed(text)
	st.Apply(Effect{Kind: s.Kind, Words: s.Words, Runs: s.Runs, Procedure: st.ProcedureOf(s), Expected: true}, code, code)
}

func TestWhatAStatementLeavesPinsTheSession(t *testing.T) {
	const syntax, noTable, deadlock = mysql.ER_PARSE_ERROR, mysql.ER_NO_SUCH_TABLE, mysql.ER_LOCK_DEADLOCK
	type ran struct {
		text string
		code uint16
	}
	for _, c := range []struct {
		ran  []ran
		want Pins
	}{
		{[]ran{{"SELECT 1", 0}}, 0},
		{[]ran{{"SELECT GET_LOCK('a', 1)", 0}}, 1 << PinUserLock},
		{[]ran{{"SELECT GET_LOCK('a', 1), no_such", mysql.ER_BAD_FIELD_ERROR}}, 0},
		{[]ran{{"SELECT GET_LOCK('a', 1) FROM t", deadlock}}, 1 << PinUserLock},
		{[]ran{{"CREATE TEMPORARY TABLE t (a INT)", 0}}, 1 << PinTemporaryTable},
		{[]ran{{"CREATE TEMPORARY TABLE t (a INT)", mysql.ER_TABLE_EXISTS_ERROR}}, 0},
		{[]ran{{"LOCK TABLES t READ", 0}}, 1 << PinTableLock},
		{[]ran{{"LOCK TABLES t READ", 0}, {"UNLOCK TABLES", 0}}, 0},
		{[]ran{{"LOCK TABLES t READ", 0}, {"BEGIN", 0}}, 0},
		{[]ran{{"LOCK TABLES t READ", 0}, {"LOCK TABLES no_such READ", noTable}}, 0},
		{[]ran{{"LOCK TABLES t READ", 0}, {"LOCK TABLES t READ", deadlock}}, 1 << PinTableLock},
		{[]ran{{"FLUSH TABLES WITH READ LOCK", 0}}, 1 << PinGlobalLock},
		{[]ran{{"HANDLER t OPEN", 0}}, 1 << PinHandler},
		{[]ran{{"HANDLER t OPEN", noTable}}, 0},
		{[]ran{{"PREPARE p FROM 'SELECT 1'", 0}}, 1 << PinSQLPrepare},
		{[]ran{{"PREPARE p FROM 'SELEC 1'", syntax}}, 0},
		{[]ran{{"EXECUTE p", mysql.ER_UNKNOWN_STMT_HANDLER}}, 0},
		{[]ran{{"PREPARE p FROM 'SELECT 1'", 0}, {"EXECUTE p", mysql.ER_UNKNOWN_STMT_HANDLER}}, 1<<PinSQLPrepare | 1<<PinOpaque},
		{[]ran{{"CALL p()", 0}}, 1 << PinOpaque},
		{[]ran{{"CALL p()", deadlock}}, 1 << PinOpaque},
		{[]ran{{"SELECT 1; DO 2", 0}}, 1 << PinOpaque},
		{[]ran{{"SELECT 1; INSERT INTO t VALUES (2)", 0}}, 0},
		{[]ran{{"SELECT 1; SELECT GET_LOCK('a', 1)", 0}}, 1<<PinOpaque | 1<<PinUserLock},
		{[]ran{{"SELECT @a := 1", 0}}, 1 << PinUserVariable},
	} {
		var st State
		st.Reset()
		for _, r := range c.ran {
			st.ran(r.text, r.code)
		}
		if st.Pins != c.want {
			t.Errorf("%v: got %q, want %q", c.ran, st.Pins.Words(), c.want.Words())
		}
	}
}

func TestAProcedureThatIsNotThereHasLeftNothing(t *testing.T) {
	for message, want := range map[string]Pins{
		"PROCEDURE shop.p does not exist": 0,
		"PROCEDURE shop.q does not exist": 1 << PinOpaque, // called by p
	} {
		var st State
		st.Reset()
		st.Schema = "shop"
		s := analysed("CALL p()")
		e := Effect{Kind: s.Kind, Words: s.Words, Runs: s.Runs, Procedure: st.ProcedureOf(s), Expected: true}
		e.Refused(&protocol.ServerError{Code: mysql.ER_SP_DOES_NOT_EXIST, State: "42000", Message: message})
		st.Apply(e, mysql.ER_SP_DOES_NOT_EXIST, mysql.ER_SP_DOES_NOT_EXIST)
		if st.Pins != want {
			t.Errorf("%s: got %q, want %q", message, st.Pins.Words(), want.Words())
		}
	}
}

func TestSetTransactionIsOfTheNextTransactionAlone(t *testing.T) {
	for _, c := range []struct {
		name string
		then func(*State)
		want bool
	}{
		{"nothing", func(*State) {}, true},
		{"a transaction begins", func(st *State) { st.Observe(protocol.Autocommit|protocol.InTransaction, true) }, true},
		{"a transaction ends", func(st *State) {
			st.Observe(protocol.Autocommit|protocol.InTransaction, true)
			st.Observe(protocol.Autocommit, true)
		}, false},
		{"a statement is its own", func(st *State) { st.ran("INSERT INTO t VALUES (1)", 0) }, false},
		{"a statement that failed", func(st *State) { st.ran("INSERT INTO t VALUES (1)", mysql.ER_DUP_ENTRY) }, true},
		{"a statement without a table", func(st *State) { st.ran("SELECT 1", 0) }, true},
		{"a statement of the system schema", func(st *State) { st.ran("SELECT * FROM information_schema.tables", 0) }, true},
		{"without autocommit", func(st *State) {
			st.Observe(0, true)
			st.ran("INSERT INTO t VALUES (1)", 0)
		}, true},
		{"COMMIT", func(st *State) { st.ran("COMMIT", 0) }, false},
	} {
		var st State
		st.Reset()
		text := "SET TRANSACTION READ ONLY"
		st.SetVariables(analysed(text), []byte(text))
		if !st.NextTransaction || st.Pins != 0 {
			t.Fatalf("SET TRANSACTION: got %v, pins %q", st.NextTransaction, st.Pins.Words())
		}
		if c.then(&st); st.NextTransaction != c.want {
			t.Errorf("%s: got %v, want %v", c.name, st.NextTransaction, c.want)
		}
	}
}

func TestASetIsCarriedOrPins(t *testing.T) {
	thousand := strings.Repeat("0", 1000)
	for text, want := range map[string]struct {
		system string
		user   string
		pins   Pins
	}{
		"SET time_zone = '+00:00'":          {system: "time_zone"},
		"SET SESSION sql_mode = ''":         {system: "sql_mode"},
		"SET @a = 1":                        {user: "a"},
		"SET @a = 1 + 1":                    {pins: 1 << PinUserVariable},
		"SET @a = 0." + thousand:            {pins: 1 << PinUserVariable},
		"SET @a = '" + thousand + "'":       {user: "a"},
		"SET @`\u00e4` = 1":                 {pins: 1 << PinVariableName},
		"SET insert_id = 5":                 {pins: 1 << PinInsertID},
		"SET timestamp = 5":                 {pins: 1 << PinTimestamp},
		"SET rand_seed1 = 5":                {pins: 1 << PinRandSeed},
		"SET ROLE a":                        {pins: 1 << PinRole},
		"SET last_insert_id = 5":            {},
		"SET SESSION TRANSACTION READ ONLY": {system: "tx_read_only"},
	} {
		var st State
		st.Reset()
		st.SetVariables(analysed(text), []byte(text))
		if want.system != "" && st.Sysvars[want.system] != st.Version || want.system == "" && len(st.Sysvars) > 0 {
			t.Errorf("%s: system variables %v, want %q", text, st.Sysvars, want.system)
		}
		if _, is := st.Uservars[want.user]; is != (want.user != "") || len(st.Uservars) > 1 {
			t.Errorf("%s: user variables %v, want %q", text, st.Uservars, want.user)
		}
		if st.Pins != want.pins {
			t.Errorf("%s: pins %q, want %q", text, st.Pins.Words(), want.pins.Words())
		}
	}
}

func TestAListOfTrackedVariablesMayHaveTheLastGTID(t *testing.T) {
	for value, want := range map[string]bool{
		"'time_zone'": false, "DEFAULT": false, "CONCAT(@@global.session_track_system_variables,',tx_isolation')": false,
		"'*'": true, "'autocommit,Last_GTID'": true,
	} {
		var st State
		text := "SET session_track_system_variables = " + value
		if st.SetVariables(analysed(text), []byte(text)); st.TracksGTID != want {
			t.Errorf("%s: got %v, want %v", text, st.TracksGTID, want)
		}
	}
}

func TestAConnectionLacksWhatWasSetSince(t *testing.T) {
	var st State
	st.Reset()
	st.Synced(1, st.Version)
	set := func(text string) { st.SetVariables(analysed(text), []byte(text)) }
	set("SET time_zone = '+00:00'")
	st.Synced(1, st.Version)
	st.Synced(2, 0)
	if st.SyncedTo(1) != st.Version || st.SyncedTo(2) >= st.Sysvars["time_zone"] {
		t.Errorf("got %d and %d of %d", st.SyncedTo(1), st.SyncedTo(2), st.Version)
	}
	st.LastConn, st.LastID.Holder = 1, 2
	if !st.Needs(1) || !st.Needs(2) || st.Needs(3) {
		t.Errorf("needs of connections 1, 2 and 3: got %v, %v, %v, want true, true, false", st.Needs(1), st.Needs(2), st.Needs(3))
	}
	st.Forget(1)
	st.Forget(2)
	if st.Needs(1) || st.Needs(2) || st.SyncedTo(1) != 0 || st.LastConn != 0 || st.LastID.Holder != 0 {
		t.Error("a closed connection is still the holder")
	}
}

func TestLastInsertIDTravelsInAStatementThatKeepsTheRest(t *testing.T) {
	const selects, does, into = "SELECT LAST_INSERT_ID(7) LIMIT 1", "DO LAST_INSERT_ID(7)", "SELECT LAST_INSERT_ID(7) INTO " + rowCountVariable
	const set = "SET @@session.last_insert_id = 7"
	row := func(l *LastInsertID) { l.Given(7) }
	ok := func(l *LastInsertID) { l.answered(true, 7) }
	elsewhere := func(l *LastInsertID) { l.Holder = 2 }
	inserted := func(l *LastInsertID) { l.GivenInOK(7); l.Inserted = true }
	for _, c := range []struct {
		name                  string
		after                 func(*LastInsertID)
		keep, counts, mariaDB bool
		text, then            string
	}{
		{"a row of the proxy's", row, false, true, true, selects, ""},
		{"a row of the proxy's, kept", row, true, true, true, selects, "DO 0"},
		{"and the server has sent rows since", ok, false, true, true, does, ""},
		{"and the server has sent rows since, MySQL", ok, false, true, false, set, ""},
		{"another connection's", elsewhere, false, true, true, selects, ""},
		{"another connection's, kept", elsewhere, true, true, true, does, ""},
		{"another connection's, kept, after rows", elsewhere, true, false, true, does, "SHOW WARNINGS LIMIT 0"},
		{"another connection's, kept, MySQL", elsewhere, true, true, false, set, ""},
		{"one row was put in", inserted, true, true, true, into, ""},
	} {
		var l LastInsertID
		c.after(&l)
		text, then := l.Travel(7, c.keep, c.counts, c.mariaDB)
		if text != c.text || then != c.then {
			t.Errorf("%s: got %q and %q, want %q and %q", c.name, text, then, c.text, c.then)
		}
	}
}

// answered gives a number, and then a server answers with rows or without.
func (l *LastInsertID) answered(rows bool, n uint64) {
	st := State{}
	st.LastID.Given(n)
	st.Answered(1, rows)
	*l = st.LastID
}

func TestANumberTravelsWhereItIsNot(t *testing.T) {
	var l LastInsertID
	if value, ok := l.Get(); !ok || value != 0 || l.Travels(1) {
		t.Errorf("at the start: got %d, %v, travels %v", value, ok, l.Travels(1))
	}
	l.Given(7)
	if value, ok := l.Get(); !ok || value != 7 || !l.Travels(1) {
		t.Errorf("a number of the proxy's: got %d, %v, travels %v", value, ok, l.Travels(1))
	}
	l = LastInsertID{Holder: 1}
	if _, ok := l.Get(); ok || l.Travels(1) || !l.Travels(2) {
		t.Errorf("a server's: known %v, travels to it %v, to another %v", ok, l.Travels(1), l.Travels(2))
	}
}

func TestAPingResetsRowCounts(t *testing.T) {
	for answer, want := range map[Answer]string{
		OurRows: "DO 0", OurOK: "DO 0", OurError: "", OurChange: "DO (SELECT 1 FROM (SELECT 1) AS seqproxy)",
	} {
		st := State{LastAnswer: answer, LastChanged: 1}
		st.Pinged()
		if got := st.StandsFor(); got != want {
			t.Errorf("%d: got %q, want %q", answer, got, want)
		}
	}
	for answer, want := range map[Answer]Answer{ByServer: ByServer, OurError: OurTableOK, OurTableRows: OurTableOK, OurTableOK: OurTableOK} {
		st := State{LastAnswer: answer}
		st.Pinged()
		if st.LastAnswer != want {
			t.Errorf("%d: its warnings are lost: got %d, want %d", answer, st.LastAnswer, want)
		}
	}
}

func TestASelectOfTheProxyKeepsItsWarningsWithMariaDB(t *testing.T) {
	for answer, want := range map[Answer][2]Answer{ // MySQL, MariaDB
		ByServer: {OurRows, OurRows}, OurRows: {OurRows, OurRows}, OurOK: {OurRows, OurRows},
		OurError: {OurRows, OurTableRows}, OurTableRows: {OurRows, OurTableRows}, OurTableOK: {OurRows, OurTableRows}, OurChange: {OurRows, OurTableRows},
	} {
		for i, mariaDB := range []bool{false, true} {
			st := State{LastAnswer: answer}
			if st.Selected(mariaDB); st.LastAnswer != want[i] {
				t.Errorf("%d, MariaDB %v: got %d, want %d", answer, mariaDB, st.LastAnswer, want[i])
			}
		}
	}
}
