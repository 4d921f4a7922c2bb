package proxy_test

import (
	"strings"
	"testing"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

// readings are texts that are read in more than one way, depending on sql_mode and character set:
// in another setting the call is within a string, or a string has no end.
var readings = []string{
	`SELECT 'a\', NEXTVAL(s), ' -- '`,
	`SELECT "a\", NEXTVAL(s), " -- "`,
	`SELECT NEXTVAL(s), 'a\'`,
	`SELECT 1 AS "x", NEXTVAL(s) AS "y\"`,
	`SELECT 1 AS "x'", NEXTVAL(s), ' -- '`,
	`SELECT NEXTVAL(s) AS "x", "NEXTVAL(s)"`,
	"SELECT 'a\xbf\\', NEXTVAL(s), ' -- '",
	"SELECT \"a\x83\\\", NEXTVAL(s), \" -- \"",
	"SELECT 1 AS `a\x81`, NEXTVAL(s), 1 AS ` -- `",
	`SELECT 1 AS [x], 1 AS [NEXTVAL(s)]`,
	`SELECT NEXTVAL(s), LENGTH('é') AS é`,
}

// modeChanges are ways to change how texts are read. Several statements are sent one by one. %
// stands for a mode.
var (
	modeChanges = [][]string{
		{"SET sql_mode = '%'"},
		{"SET SESSION sql_mode = '%'"},
		{"SET @@sql_mode = '%'"},
		{"SET @@session.sql_mode := '%'"},
		{"SET LOCAL sql_mode = '%'"},
		{"set @@LOCAL.`sql_mode`='%'"},
		{"SET sql_mode = CONCAT(@@sql_mode, ',%')"},
		{"SET sql_mode = (SELECT '%')"},
		{"SET @m = '%'", "SET sql_mode = @m"},
		{"SET @a = 1, sql_mode = '%', @b = 2"},
		{"SET sql_mode = '', sql_mode = '%'"},
		{"SET sql_mode = '%', sql_mode = ''"},
		{"SET sql_mode = '%'", "SET sql_mode = DEFAULT"},
		{"SET sql_mode = '%'", "SET sql_mode = 'nonsense'"},
		{"SET sql_mode = '%', nonsense = 1"},
		{"SET sql_mode = '%'", "SET sql_mode = @@sql_mode"},
		{"SET sql_mode = 4"},
		{"SET sql_mode = 1048576"},
		{"SET sql_mode = 1048580"},
		{"DO 1; SET sql_mode = '%'"},
		{"SET sql_mode = '%'; DO 1"},
		{"SET sql_mode = '%'; SET sql_mode = ''"},
		{"PREPARE p FROM \"SET sql_mode = '%'\"", "EXECUTE p"},
		{"SET @p = \"SET sql_mode = '%'\"; PREPARE p FROM @p; EXECUTE p"},
		{"CALL mode_proc()"},
		{"CALL names_proc()"},
		{"SELECT mode_func()"},
		{"SET sql_mode = '%'", "SELECT mode_func()"},
		{"/*! SET sql_mode = '%' */"},
		{"/*!99999 SET sql_mode = '%' */"},
		{"SET sql_mode = '%'", "RESET"},
		{"SET GLOBAL sql_mode = @@global.sql_mode", "SET sql_mode = '%'", "USER"},
		{"SET NAMES gbk"},
		{"SET NAMES 'gbk' COLLATE 'gbk_bin'"},
		{"SET character_set_client = gbk"},
		{"SET @@session.character_set_client = 'sjis'"},
		{"SET CHARACTER SET gbk"},
		{"SET CHARSET 'big5'"},
		{"SET NAMES gbk", "SET NAMES DEFAULT"},
		{"SET NAMES gbk", "RESET"},
		{"SET NAMES gbk", "USER"},
		{"SET NAMES gbk, sql_mode = '%'"},
		{"SET NAMES gbk, nonsense = 1"},
		{"SET character_set_client = (SELECT 'sjis'), sql_mode = CONCAT('%')"},
	}
	mariaDBChanges = [][]string{
		{"SET STATEMENT sql_mode = '%' FOR SELECT 1"},
		{"SET STATEMENT sql_mode = '%' FOR DO 1"},
		{"SET STATEMENT sql_mode = '%' FOR SET @x = 1"},
		{"SET STATEMENT sql_mode = '%' FOR SET sql_mode = 'ANSI_QUOTES'"},
		{"EXECUTE IMMEDIATE \"SET sql_mode = '%'\""},
		{"BEGIN NOT ATOMIC SET sql_mode = '%'; END"},
		{"/*M! SET sql_mode = '%' */"},
		{"SET sql_mode = 'ORACLE'"},
		{"SET sql_mode = 'MSSQL'"},
		{"SET sql_mode = DB2"},
		{"SET sql_mode = 'POSTGRESQL,NO_BACKSLASH_ESCAPES'"},
	}
	mySQLChanges = [][]string{
		{"SELECT /*+ SET_VAR(sql_mode = '%') */ 1"},
		{"SELECT /*+ SET_VAR(sql_mode = '%') */ 1; DO 1"},
	}
)

// Checklist 28.
func TestHoweverTheModeIsChangedTextsAreReadAsTheServerReadsThem(t *testing.T) {
	e := newEnv(t, setup{})
	if _, err := e.Sequences.Create(t.Context(), sequence.CreateOptions{Name: "s", Start: 1000}); err != nil {
		t.Fatal(err)
	}
	e.Servers[0].Exec(t, "USE "+e.Schemas[0],
		"CREATE PROCEDURE mode_proc() BEGIN SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'; SELECT 1; END",
		"CREATE PROCEDURE names_proc() SET NAMES sjis",
		"CREATE FUNCTION mode_func() RETURNS INT DETERMINISTIC BEGIN SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'; RETURN 1; END")
	changes := append([][]string(nil), modeChanges...)
	if e.Servers[0].IsMariaDB() {
		changes = append(changes, mariaDBChanges...)
	} else {
		changes = append(changes, mySQLChanges...)
	}
	ran, given, refused := 0, 0, 0
	for _, how := range changes {
		for i, mode := range []string{"ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "ANSI,NO_BACKSLASH_ESCAPES"} {
			script := strings.ReplaceAll(strings.Join(how, "\n"), "%", mode)
			if i > 0 && !strings.Contains(strings.Join(how, ""), "%") {
				continue
			}
			for first := range readings {
				p := e.Pair(t, 0, wireLogin{Schema: e.Schemas[0], Capabilities: withoutTracking})
				for _, step := range strings.Split(script, "\n") {
					switch step {
					case "RESET":
						p.same(protocol.ComResetConn, "")
					case "USER":
						for _, w := range []*wire{p.Proxy, p.Direct} {
							if got := w.changeTo(e.User, e.Password, e.Schemas[0], p.Direct.hello.Plugin, 45); got[4] != 0 {
								t.Fatal(serverError(t, got))
							}
						}
					default:
						p.query(step)
					}
				}
				for i := range 2 { // the proxy reads the first one before it has asked for the mode
					got, no := p.sameReading(script, readings[(first+i)%len(readings)])
					ran++
					if got {
						given++
					}
					if no {
						refused++
					}
				}
				p.Proxy.Close()
				p.Direct.Close()
				if t.Failed() {
					break
				}
			}
		}
	}
	t.Logf("%d texts, %d with results, %d refused", ran, given, refused)
	if given < ran/4 || refused > ran/8 {
		t.Errorf("of %d texts %d had results and %d were refused", ran, given, refused)
	}
}

// readAsServer runs every reading as the first text of a new connection.
func readAsServer(t *testing.T, e *env, what string, l wireLogin, before ...protocol.Command) {
	t.Helper()
	ran, given := 0, 0
	for first := range readings {
		p := e.Pair(t, 0, l)
		for _, cmd := range before {
			p.same(cmd, "")
		}
		for i := range 2 {
			if got, _ := p.sameReading(what, readings[(first+i)%len(readings)]); got {
				given++
			}
			ran++
		}
		p.Proxy.Close()
		p.Direct.Close()
	}
	if given < ran/3 {
		t.Errorf("%s: of %d texts %d had results", what, ran, given)
	}
}

// Checklist 28.
func TestASessionStartsInTheModeThatItsServerHasNow(t *testing.T) {
	server := mysqltest.Start(t)
	e := newEnv(t, setup{Servers: []*mysqltest.Server{server}})
	if _, err := e.Sequences.Create(t.Context(), sequence.CreateOptions{Name: "s", Start: 1000}); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{"ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES", ""} {
		server.Exec(t, "SET GLOBAL sql_mode = '"+mode+"'")
		readAsServer(t, e, "global "+mode, wireLogin{Schema: e.Schemas[0]})
		readAsServer(t, e, "global "+mode+" and reset", wireLogin{Schema: e.Schemas[0]}, protocol.ComResetConn)
		// The proxy has no connection to the server when the first text comes.
		readAsServer(t, e, "global "+mode+" without a schema", wireLogin{Capabilities: withoutTracking})
	}
}

// Checklist 28.
func TestASessionStartsInTheModeThatInitConnectGivesIt(t *testing.T) {
	server := mysqltest.Start(t, "--init-connect=DO 1")
	plain := "plain" // init_connect does not run for accounts with all rights
	e := newEnv(t, setup{Servers: []*mysqltest.Server{server}, Proxy: func(o *proxy.Options) {
		o.Users = append(o.Users, proxy.User{Name: plain, Password: plain})
	}})
	if _, err := e.Sequences.Create(t.Context(), sequence.CreateOptions{Name: "s", Start: 1000}); err != nil {
		t.Fatal(err)
	}
	server.Exec(t, "CREATE USER plain@'%' IDENTIFIED BY 'plain'", "GRANT ALL ON "+e.Schemas[0]+".* TO plain@'%'")
	as := wireLogin{Schema: e.Schemas[0], User: &plain, Password: &plain, Capabilities: withoutTracking}
	for _, set := range []string{
		"SET sql_mode = 'NO_BACKSLASH_ESCAPES'", "SET sql_mode = 'ANSI_QUOTES'", "SET NAMES gbk", "SET NAMES sjis",
	} {
		server.Exec(t, "SET GLOBAL init_connect = \""+set+"\"")
		readAsServer(t, e, "init_connect "+set, as)
		as.Schema = ""
		readAsServer(t, e, "init_connect "+set+" without a schema", as)
		as.Schema = e.Schemas[0]
	}
}

// Checklist 28.
func TestAfterALoginInAnotherCharacterSetAndAResetTextsAreReadAsTheServerReadsThem(t *testing.T) {
	e := newEnv(t, setup{})
	if _, err := e.Sequences.Create(t.Context(), sequence.CreateOptions{Name: "s", Start: 1000}); err != nil {
		t.Fatal(err)
	}
	for charset, collation := range map[string]uint16{"gbk": 28, "sjis": 13, "big5": 1, "gb18030": 248, "latin1": 8, "utf8mb4_0900_ai_ci": 255} {
		l := wireLogin{Schema: e.Schemas[0], Collation: collation}
		readAsServer(t, e, charset, l)
		if collation < 248 || !e.Servers[0].IsMariaDB() {
			// MariaDB takes an unknown id for leftover memory of another session.
			readAsServer(t, e, charset+" and reset", l, protocol.ComResetConn)
		}
	}
}

// Checklist 5.
func TestAServerThatTakesNoNoticeOfTheClientsCollationReadsTextsInItsOwn(t *testing.T) {
	mysqltest.Shared(t).OnMariaDB(t, "skip-character-set-client-handshake, which MySQL 9 knows no more")
	for _, charset := range []string{"gbk", "latin1"} {
		server := mysqltest.Start(t, "--skip-character-set-client-handshake", "--character-set-server="+charset)
		e := newEnv(t, setup{Servers: []*mysqltest.Server{server}})
		if _, err := e.Sequences.Create(t.Context(), sequence.CreateOptions{Name: "s", Start: 1000}); err != nil {
			t.Fatal(err)
		}
		if got := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]}).rows("SELECT @@character_set_client")[0]; got != charset {
			t.Fatalf("the server uses the collation: got %s, want %s", got, charset)
		}
		readAsServer(t, e, charset, wireLogin{Schema: e.Schemas[0]})
		readAsServer(t, e, charset+" without a schema", wireLogin{Capabilities: withoutTracking})
	}
}
