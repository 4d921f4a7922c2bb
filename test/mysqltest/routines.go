package mysqltest

// The first byte of an answer's last packet.
const (
	EndsOK  = 0x00
	EndsERR = 0xff
	EndsEOF = 0xfe // or the OK that stands for one
)

// RoutineCall is a statement that runs a stored routine, or one like it, and its answer to a client
// that accepts several results.
type RoutineCall struct {
	SQL string
	// Ends is the first byte of the answer's last packet.
	Ends byte
	// Rows says that there is a result set.
	Rows bool
	// Cursor: an execution that asks for a cursor gets one, which ends the answer.
	Cursor bool
	// NoCursor: an execution that asks for a cursor is an error.
	NoCursor bool
	// Arguments are types and values of the parameters, as in an execution.
	Arguments string
	// Mode is the sql_mode that the statement is for; empty: the default.
	Mode string
}

// cursor begins a block and opens a cursor.
const cursor = "BEGIN DECLARE x INT; DECLARE c CURSOR FOR SELECT id FROM t; OPEN c; "

// each is a handler and a loop over a cursor's rows: its body stands between the two.
const (
	eachRow    = "BEGIN DECLARE x INT; DECLARE done INT DEFAULT 0; DECLARE c CURSOR FOR SELECT id FROM t; DECLARE CONTINUE HANDLER FOR NOT FOUND SET done = 1; OPEN c; l: LOOP FETCH c INTO x; IF done THEN LEAVE l; END IF; "
	eachRowEnd = " END LOOP; CLOSE c; END"
)

// Routines returns statements that create routines with all features, and calls of these. They need
// an empty schema.
func (s *Server) Routines() (create []string, calls []RoutineCall) {
	create = []string{
		"CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(100))", "INSERT INTO t VALUES (1, 'one'), (2, NULL), (3, 'three')",
		"CREATE TABLE nobody (id INT)", "CREATE TABLE made (id INT)", "CREATE TABLE sprung (id INT)",
		"CREATE FUNCTION f() RETURNS INT DETERMINISTIC READS SQL DATA " + cursor + "FETCH c INTO x; CLOSE c; RETURN x; END",
		"CREATE FUNCTION f_open(a INT) RETURNS INT DETERMINISTIC READS SQL DATA " + cursor + "FETCH c INTO x; RETURN x + a; END",
		"CREATE TRIGGER springs BEFORE INSERT ON sprung FOR EACH ROW " + cursor + "FETCH c INTO x; SET NEW.id = NEW.id + x; END",
	}
	procedure := func(name, params, body string) {
		create = append(create, "CREATE PROCEDURE "+name+"("+params+") "+body)
	}
	call := func(sql string, ends byte, rows bool) {
		calls = append(calls, RoutineCall{SQL: sql, Ends: ends, Rows: rows})
	}
	// both makes a procedure without parameters, and calls it.
	both := func(name, body string, ends byte, rows bool) {
		procedure(name, "", body)
		call("CALL "+name+"()", ends, rows)
	}

	both("nothing", "DO 1", EndsOK, false)
	both("one", "SELECT 1", EndsOK, true)
	both("three", "BEGIN SELECT 1; SELECT * FROM nobody; SELECT id, s FROM t; END", EndsOK, true)

	// Cursors.
	both("closed", cursor+"CLOSE c; SELECT 1; END", EndsOK, true)
	both("closed_alone", cursor+"CLOSE c; END", EndsOK, false)
	both("left_open", cursor+"SELECT 1; SELECT id, s FROM t; END", EndsOK, true)
	both("opened_last", "BEGIN DECLARE c CURSOR FOR SELECT id FROM t; SELECT 1; OPEN c; END", EndsOK, true)
	both("opened_between", "BEGIN DECLARE c CURSOR FOR SELECT id FROM t; SELECT 1; OPEN c; SELECT 2; CLOSE c; SELECT 3; OPEN c; SELECT 4; END", EndsOK, true)
	both("row_by_row", eachRow+"SELECT x;"+eachRowEnd, EndsOK, true)
	both("row_by_row_nested", eachRow+cursor+"FETCH c INTO x; SELECT x; END;"+eachRowEnd, EndsOK, true)
	both("over_no_rows", "BEGIN DECLARE c CURSOR FOR SELECT id FROM nobody; OPEN c; SELECT 1; CLOSE c; END", EndsOK, true)
	both("no_rows_behind", cursor+"SELECT * FROM nobody; END", EndsOK, true)
	both("writes", cursor+"INSERT INTO made VALUES (1); UPDATE t SET s = s; END", EndsOK, false)
	both("shows", cursor+"SHOW TABLES; SHOW CREATE TABLE t; EXPLAIN SELECT 1; SHOW WARNINGS; END", EndsOK, true)
	both("transacts", cursor+"START TRANSACTION; SELECT 1; COMMIT; SELECT 2; END", EndsOK, true)

	// Errors in the middle.
	both("fails", "BEGIN SELECT 1; SELECT * FROM missing; END", EndsERR, true)
	both("fails_with_cursor", cursor+"SELECT 1; SELECT * FROM missing; END", EndsERR, true)
	both("fails_at_once", cursor+"SELECT * FROM missing; END", EndsERR, false)
	both("fails_in_rows", cursor+"SELECT id, POW(id, 800) FROM t; END", EndsERR, true)
	both("fails_in_cursor", "BEGIN DECLARE c CURSOR FOR SELECT id, POW(id, 800) FROM t; SELECT 1; OPEN c; END", EndsERR, true)
	both("fetches_beyond", "BEGIN DECLARE x INT; DECLARE c CURSOR FOR SELECT id FROM nobody; SELECT 1; OPEN c; FETCH c INTO x; END", EndsERR, true)
	both("handled", cursor+"BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION SELECT 'handled'; SELECT 1; SELECT * FROM missing; END; SELECT 2; END", EndsOK, true)
	both("kills_itself", cursor+"SELECT 1; KILL QUERY CONNECTION_ID(); SELECT 2; END", EndsERR, true)

	// Conditions.
	both("signals", "BEGIN SELECT 1; SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'so it is'; END", EndsERR, true)
	both("signals_with_cursor", cursor+"SELECT 1; SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'so it is'; END", EndsERR, true)
	both("signals_at_once", cursor+"SIGNAL SQLSTATE '45000'; END", EndsERR, false)
	both("resignals", cursor+"BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN SELECT 'seen'; RESIGNAL; END; SELECT * FROM missing; END; END", EndsERR, true)
	both("warns", cursor+"SIGNAL SQLSTATE '01000' SET MESSAGE_TEXT = 'mind'; SELECT CAST('a' AS SIGNED); SIGNAL SQLSTATE '01000'; END", EndsOK, true)
	both("warns_alone", "SIGNAL SQLSTATE '01000'", EndsOK, false)
	both("diagnoses", cursor+"BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN GET DIAGNOSTICS CONDITION 1 @m = MESSAGE_TEXT; SELECT 1; END; SELECT * FROM missing; END; END", EndsOK, true)

	// Calls in calls, and statements made of text.
	both("calls", "BEGIN CALL left_open(); CALL three(); SELECT 9; END", EndsOK, true)
	both("calls_with_cursor", cursor+"CALL left_open(); CALL closed(); SELECT 9; END", EndsOK, true)
	both("calls_what_fails", cursor+"CALL one(); CALL fails_with_cursor(); SELECT 9; END", EndsERR, true)
	both("dynamic", "BEGIN PREPARE p FROM 'SELECT 1'; EXECUTE p; EXECUTE p; DEALLOCATE PREPARE p; END", EndsOK, true)
	both("dynamic_with_cursor", cursor+"PREPARE p FROM 'SELECT id, s FROM t'; EXECUTE p; DEALLOCATE PREPARE p; SELECT 1; END", EndsOK, true)
	both("dynamic_call", cursor+"PREPARE p FROM 'CALL left_open()'; EXECUTE p; DEALLOCATE PREPARE p; END", EndsOK, true)
	both("dynamic_fails", cursor+"PREPARE p FROM 'SELECT * FROM t WHERE id = (SELECT id FROM t)'; SELECT 1; EXECUTE p; END", EndsERR, true)

	// OUT parameters.
	const two = "\x03\x00\x03\x00\x05\x00\x00\x00\x07\x00\x00\x00"
	for _, p := range []struct {
		name, body string
		ends       byte
		rows       bool
	}{
		{"out_alone", "BEGIN SET a = 1; SET b = b + 1; END", EndsOK, false},
		{"out_behind_rows", "BEGIN SELECT 1; SET a = 1; END", EndsOK, true},
		{"out_cursor", cursor + "FETCH c INTO a; END", EndsOK, false},
		{"out_cursor_rows", cursor + "FETCH c INTO a; SELECT a; SET b = b + 1; END", EndsOK, true},
		{"out_fails", cursor + "SET a = 1; SELECT 1; SIGNAL SQLSTATE '45000'; END", EndsERR, true},
		{"out_warns", cursor + "SET a = 1; SIGNAL SQLSTATE '01000'; END", EndsOK, false},
		{"out_dynamic", cursor + "PREPARE p FROM 'CALL out_cursor(?, ?)'; EXECUTE p USING @a, @b; SELECT @a; DEALLOCATE PREPARE p; SET a = @a; END", EndsOK, true},
		{"out_nested", cursor + "CALL out_cursor_rows(a, b); SELECT b; END", EndsOK, true},
	} {
		procedure(p.name, "OUT a INT, INOUT b INT", p.body)
		call("CALL "+p.name+"(@a, @b)", p.ends, p.rows)
		// The parameters come as a result set.
		calls = append(calls, RoutineCall{SQL: "CALL " + p.name + "(?, ?)", Ends: p.ends, Rows: true, Arguments: two})
	}

	// Statements outside of routines that open a cursor.
	opens := func(sql string) {
		calls = append(calls, RoutineCall{SQL: sql, Ends: EndsEOF, Rows: true, Cursor: true})
	}
	opens("SELECT 1")
	opens("SELECT id, s FROM t")
	opens("SELECT * FROM nobody")
	opens("SELECT f(), f_open(1)")
	opens("SELECT id FROM t WHERE id = f()")
	opens("SELECT * FROM (SELECT f_open(1)) d")
	opens("SELECT * FROM (SELECT f_open(1)) d UNION SELECT f()")
	opens("WITH w AS (SELECT f_open(1) AS x) SELECT * FROM w, t WHERE id = (SELECT * FROM (SELECT f_open(0)) d)")
	opens("SHOW TABLES")
	opens("SHOW COLUMNS FROM t WHERE f() = 1")
	opens("DESCRIBE t")
	call("UPDATE t SET s = s WHERE id = f()", EndsOK, false)
	call("INSERT INTO sprung VALUES (1), (2)", EndsOK, false)
	for _, sql := range []string{"SET @x = f_open(1)", "INSERT INTO made SELECT * FROM (SELECT f_open(1)) d"} {
		calls = append(calls, RoutineCall{SQL: sql, Ends: EndsOK, NoCursor: !s.IsMariaDB()})
	}
	call("SHOW CREATE PROCEDURE closed", EndsEOF, true)
	procedure("takes", "n INT", "BEGIN SELECT n; SELECT n + 1; END")
	call("CALL takes(f_open(1))", EndsOK, true)
	calls = append(calls, RoutineCall{SQL: "CALL takes(? + f())", Ends: EndsOK, Rows: true, Arguments: "\x03\x00\x05\x00\x00\x00"})

	// Several statements in a text.
	call("CALL left_open(); SELECT 1; CALL closed(); DO 1", EndsOK, true)
	call("SELECT 1; CALL left_open(); SELECT id, s FROM t", EndsEOF, true)
	call("CALL closed_alone(); SELECT * FROM (SELECT f_open(1)) d", EndsEOF, true)
	call("CALL left_open(); CALL fails_with_cursor(); SELECT 1", EndsERR, true)

	if !s.IsMariaDB() {
		opens("TABLE t")
		opens("VALUES ROW(f_open(1))")
		return create, calls
	}
	opens("VALUES (1), (f())")
	// MySQL 9 ends where one asks for a cursor
	call("EXPLAIN SELECT * FROM (SELECT f_open(1)) d", EndsEOF, true)
	call("INSERT INTO sprung VALUES (1), (2) RETURNING id", EndsEOF, true)
	call("INSERT INTO made SELECT * FROM (SELECT f_open(1)) d RETURNING id", EndsEOF, true)
	call("BEGIN NOT ATOMIC SELECT 1; END", EndsOK, true)
	call("BEGIN NOT ATOMIC DECLARE c CURSOR FOR SELECT 1; OPEN c; END", EndsOK, false)
	call("BEGIN NOT ATOMIC DECLARE c CURSOR FOR SELECT 1; OPEN c; SELECT 1; SELECT id FROM t; CLOSE c; END", EndsOK, true)
	call("BEGIN NOT ATOMIC DECLARE c CURSOR(n INT) FOR SELECT id FROM t WHERE id > n; OPEN c(1); SELECT 1; SIGNAL SQLSTATE '45000'; END", EndsERR, true)
	call("BEGIN NOT ATOMIC DECLARE c CURSOR FOR SELECT 1; OPEN c; CALL left_open(); EXECUTE IMMEDIATE 'SELECT 2'; END", EndsOK, true)
	call("FOR r IN (SELECT id FROM t) DO SELECT r.id; END FOR", EndsOK, true)
	call("FOR r IN (SELECT id FROM t) DO SET @x = r.id; END FOR", EndsOK, false)
	call("FOR r IN (SELECT id FROM t) DO FOR q IN (SELECT id FROM t) DO SELECT r.id, q.id; END FOR; END FOR", EndsOK, true)
	call("BEGIN NOT ATOMIC FOR r IN (SELECT id FROM nobody) DO SELECT r.id; END FOR; SELECT 1; END", EndsOK, true)
	call("IF f() = 1 THEN SELECT 1; CALL left_open(); END IF", EndsOK, true)
	call("CASE f_open(1) WHEN 2 THEN FOR r IN (SELECT id FROM t) DO SELECT r.id; END FOR; END CASE", EndsOK, true)
	both("for_each", "BEGIN DECLARE c CURSOR(n INT) FOR SELECT id FROM t WHERE id > n; FOR r IN c(1) DO SELECT r.id; END FOR; SELECT 1; END", EndsOK, true)
	both("immediate", cursor+"EXECUTE IMMEDIATE 'SELECT ?' USING 1; EXECUTE IMMEDIATE 'CALL left_open()'; END", EndsOK, true)
	call("EXECUTE IMMEDIATE 'CALL left_open()'", EndsOK, true)
	call("EXECUTE IMMEDIATE 'BEGIN NOT ATOMIC DECLARE c CURSOR FOR SELECT 1; OPEN c; SELECT 1; END'", EndsOK, true)
	call("SET STATEMENT max_statement_time = 100 FOR CALL left_open()", EndsOK, true)
	opens("SET STATEMENT max_statement_time = 100 FOR SELECT f()")
	calls = append(calls,
		RoutineCall{SQL: "DECLARE CURSOR c IS SELECT id FROM t; BEGIN OPEN c; SELECT 1; CLOSE c; END", Ends: EndsOK, Rows: true, Mode: "ORACLE"},
		RoutineCall{SQL: "BEGIN FOR r IN (SELECT id FROM t) LOOP SELECT r.id; END LOOP; END", Ends: EndsOK, Rows: true, Mode: "ORACLE"})
	return create, calls
}
