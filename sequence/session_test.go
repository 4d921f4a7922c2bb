package sequence_test

import (
	"database/sql"
	"fmt"
	"testing"

	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

// hostileValues are those that a server may give to each new session and that would change the
// meaning of our statements, or make them fail. init_connect is for accounts without SUPER.
func hostileValues(s *mysqltest.Server) []string {
	all := []string{
		"autocommit = 0", "completion_type = CHAIN", "sql_select_limit = 1", "max_join_size = 1", "max_error_count = 0",
		"sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT,NO_UNSIGNED_SUBTRACTION,HIGH_NOT_PRECEDENCE,NO_BACKSLASH_ESCAPES,IGNORE_SPACE,REAL_AS_FLOAT,NO_AUTO_VALUE_ON_ZERO'",
		"group_concat_max_len = 4", "div_precision_increment = 0", "time_zone = '-12:00'", "lock_wait_timeout = 1", "innodb_lock_wait_timeout = 1", "max_sort_length = 64",
		"low_priority_updates = 1", "big_tables = 1", "sql_safe_updates = 1", "sql_auto_is_null = 1", "sql_buffer_result = 1", "sql_warnings = 1", "unique_checks = 0",
		"foreign_key_checks = 0", "auto_increment_increment = 7", "auto_increment_offset = 3", "character_set_server = latin1", "collation_connection = latin1_bin",
		"default_storage_engine = MyISAM", "lc_messages = 'de_DE'", "init_connect = 'SET NAMES latin1, SESSION autocommit = 0, SESSION completion_type = 1'",
	}
	if s.IsMariaDB() {
		return append(all, "max_statement_time = 1", "tx_isolation = 'SERIALIZABLE'", "tx_read_only = 1", "old_mode = 'ZERO_DATE_TIME_CAST,COMPAT_5_1_CHECKSUM'",
			"note_verbosity = 'all'", "sql_if_exists = 1", "alter_algorithm = 'INSTANT'", "system_versioning_alter_history = 'KEEP'")
	}
	return append(all, "max_execution_time = 1000", "transaction_isolation = 'SERIALIZABLE'", "transaction_read_only = 1", "sql_require_primary_key = 1",
		"information_schema_stats_expiry = 31536000", "sql_generate_invisible_primary_key = 1")
}

// hostilePlaces are schemas on one server with such values. Their own connections were made before,
// and have the defaults.
func hostilePlaces(t *testing.T, n int) (places []place) {
	t.Helper()
	server := mysqltest.Start(t)
	for range n {
		p := placeOn(t, server)
		const conns = 2
		p.db.SetMaxOpenConns(conns)
		p.db.SetMaxIdleConns(conns)
		for range conns {
			conn, err := p.db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
		}
		places = append(places, p)
	}
	for _, value := range hostileValues(server) {
		server.Exec(t, "SET GLOBAL "+value)
	}
	t.Cleanup(func() { // so that the schemas are dropped over a new connection
		if server.IsMariaDB() {
			places[0].exec(t, "SET GLOBAL tx_read_only = 0")
		} else {
			places[0].exec(t, "SET GLOBAL transaction_read_only = 0")
		}
	})
	return places
}

// takeCommitted takes a number, which must be new, and its reservation visible to all other
// sessions.
func (p place) takeCommitted(t *testing.T, h *givenEver, s *sequence.Sequences, name string) {
	t.Helper()
	n := mustTake(t, s, name, 1)
	h.add(t, name, n)
	if id := p.id(t, name); id < n {
		t.Errorf("%s: %d was given, and to others the row is at %d", name, n, id)
	}
}

// An ordinary account on a server with the worst values for new sessions does all that it does
// elsewhere.
func TestValuesOfTheServerForNewSessionsDoNotMatter(t *testing.T) {
	p := hostilePlaces(t, 1)[0]
	account, h := p.user(t, "SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER"), newGivenEver()
	// each uses the session as the one before has left it
	one := func(o *sequence.Options) { o.Servers[0].MaxConns = 1; o.CreateTable = true }
	s := p.open(t, account, one, steadySize(10))
	const odd = "Größe 'n' \\ \"m\""
	mustCreate(t, s, sequence.CreateOptions{Name: odd, Cache: 5, Comment: "größer"})
	mustCreate(t, s, sequence.CreateOptions{Name: "photos", Increment: 2})
	p.takeCommitted(t, h, s, odd)
	p.takeCommitted(t, h, s, "photos")
	if n, ok, err := s.SetValue(t.Context(), []byte("photos"), 101, true); err != nil || !ok {
		t.Errorf("SETVAL: %d, %v, %v", n, ok, err)
	}
	p.takeCommitted(t, h, s, "photos")
	mustAlter(t, s, "photos", sequence.Alteration{Order: new(true)})
	p.takeCommitted(t, h, s, "photos")
	if all, err := s.List(t.Context()); err != nil || len(all) != 2 {
		t.Errorf("it lists %+v, %v, want two sequences", all, err)
	}
	if err := s.Flush(t.Context(), []byte(odd)); err != nil { // returns its numbers
		t.Error(err)
	}
	if id := p.id(t, odd); id != h.high[odd] {
		t.Errorf("after numbers were given back the row is at %d, want %d", id, h.high[odd])
	}
	other := p.open(t, account, one, steadySize(10))
	p.takeCommitted(t, h, other, odd)
	p.takeCommitted(t, h, s, odd)
	if _, err := s.Drop(t.Context(), []byte("photos"), false); err != nil {
		t.Error(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestValuesOfTheServerForNewSessionsDoNotMatterWhenServersChange(t *testing.T) {
	e := &planEstate{places: hostilePlaces(t, 2)}
	for _, p := range e.places {
		e.links = append(e.links, mysqltest.NewLink(t, p.server.Addr()))
	}
	e.places[0].withTable(t, map[string]uint64{"photos": 7, "albums": 0, "users": 0})
	s, h := e.open(t), newGivenEver()
	for _, change := range []sequence.PlanChange{{Add: e.addr(1)}, {Remove: e.addr(0)}} {
		for _, name := range []string{"photos", "albums", "users"} {
			h.add(t, name, mustTake(t, s, name, 1))
		}
		e.everyoneGives(t, h, e.change(t, s, change), "photos", "albums", "users")
	}
}

// The nodes of a group are looked at again and again: they show all that is current. A fail-over
// repeats no number.
func TestValuesOfTheNodesForNewSessionsDoNotMatter(t *testing.T) {
	names := []string{"photos", "albums", "users"}
	e := startEstateWith(t, 2, []string{"--autocommit=0", "--completion-type=CHAIN"}, names...)
	all := map[string]*given{}
	a := e.join(t, "a", nil, steadySize(40))
	for _, name := range names {
		all[name] = &given{}
		a.takeOf(t, "a", name, all[name])
	}
	mustCreate(t, a.Sequences, sequence.CreateOptions{Name: "late"})
	all["late"] = &given{}
	a.takeOf(t, "a", "late", all["late"])
	e.CatchUp(t, 1, 0)
	e.Cut(t, 1) // from here on everything is lost
	for range 100 {
		for _, name := range names {
			a.takeOf(t, "a", name, all[name])
		}
	}
	if err := e.Nodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	e.Promote(t, 1)
	e.Nodes[1].Exec(t, "SET GLOBAL sql_select_limit = 1")
	b := e.join(t, "b", nil, steadySize(40))
	for range 100 {
		for _, name := range append(names, "late") {
			b.takeOf(t, "b", name, all[name])
		}
	}
}

// What no statement's result shows is checked in the session itself: on a connection that reserves,
// and on one that looks at a node.
func TestSessionsAreSetWhateverTheServerHas(t *testing.T) {
	p := hostilePlaces(t, 1)[0]
	v := sequence.Inside(p.open(t, p.user(t, "SELECT, INSERT, UPDATE, DELETE, CREATE"), func(o *sequence.Options) { o.CreateTable = true })).First()
	want := map[string]string{
		"autocommit": "1", "completion_type": "NO_CHAIN", "sql_select_limit": "18446744073709551615", "sql_big_selects": "1", "sql_safe_updates": "0",
		"innodb_lock_wait_timeout": "2", "lock_wait_timeout": "5", "unique_checks": "1", "foreign_key_checks": "1", "sql_warnings": "0",
		"character_set_client": "utf8mb4", "character_set_results": "utf8mb4", "collation_connection": "utf8mb4_general_ci",
	}
	if p.server.IsMariaDB() {
		want["max_statement_time"], want["tx_isolation"], want["tx_read_only"] = "0", "REPEATABLE-READ", "0"
	} else {
		want["max_execution_time"], want["transaction_isolation"], want["transaction_read_only"] = "0", "REPEATABLE-READ", "0"
	}
	for kind, pool := range map[string]*sql.DB{"reserves": v.Pool(), "looks": v.Nodes()[0].Pool()} {
		for name, value := range want {
			var got string
			if err := pool.QueryRowContext(t.Context(), fmt.Sprintf("SELECT @@SESSION.%s", name)).Scan(&got); err != nil || got != value {
				t.Errorf("on a connection that %s: %s is %q, %v, want %q", kind, name, got, err, value)
			}
		}
	}
}
