package statement

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"seqproxy/statement/ddl"
	"seqproxy/statement/lex"
)

func TestStatementsToTheProxyAreRead(t *testing.T) {
	n := func(v uint64) ddl.Number { return ddl.Number{Given: true, Value: v} }
	addr := func(s string) []byte { return []byte(s) }
	for _, c := range []struct {
		sql  string
		want ddl.ProxyCommand
	}{
		{"SHOW SEQPROXY SEQUENCE SERVERS", ddl.ProxyCommand{Verb: ddl.ShowSequenceServers, Show: true}},
		{"show /* now */ SeqProxy sequence # all\n servers;", ddl.ProxyCommand{Verb: ddl.ShowSequenceServers, Show: true}},
		{"SEQPROXY ADD SEQUENCE SERVER 'db2:3306'", ddl.ProxyCommand{Verb: ddl.AddSequenceServer, Address: addr("db2:3306")}},
		{"-- two\nseqproxy add sequence server \"[::1]:3306\" ;", ddl.ProxyCommand{Verb: ddl.AddSequenceServer, Address: addr("[::1]:3306")}},
		{"seqproxy add sequence server 'a:1' with direct writers stopped", ddl.ProxyCommand{Verb: ddl.AddSequenceServer, Address: addr("a:1"), WritersStopped: true}},
		{"seqproxy remove sequence server 'a:1' with direct writers stopped force", ddl.ProxyCommand{Verb: ddl.RemoveSequenceServer, Address: addr("a:1"), WritersStopped: true, Force: true}},
		{"seqproxy remove sequence server 'a:1'", ddl.ProxyCommand{Verb: ddl.RemoveSequenceServer, Address: addr("a:1")}},
		{"seqproxy remove sequence server 'a:1' force", ddl.ProxyCommand{Verb: ddl.RemoveSequenceServer, Address: addr("a:1"), Force: true}},
		{"seqproxy remove sequence server 'a:1' force above 18446744073709551615", ddl.ProxyCommand{Verb: ddl.RemoveSequenceServer, Address: addr("a:1"), Force: true, Above: n(1<<64 - 1)}},
		{"seqproxy remove sequence server 'a:1' FORCE /* rows */ ABOVE 5000 WITH DIRECT WRITERS STOPPED", ddl.ProxyCommand{
			Verb: ddl.RemoveSequenceServer, Address: addr("a:1"), Force: true, Above: n(5000), WritersStopped: true,
		}},
		{"SHOW SEQPROXY HELP", ddl.ProxyCommand{Verb: ddl.ShowHelp, Show: true}},
		{"show seqproxy version", ddl.ProxyCommand{Verb: ddl.ShowVersion, Show: true}},
		{"show seqproxy status", ddl.ProxyCommand{Verb: ddl.ShowStatus, Show: true}},
		{"show seqproxy status like 'a%'", ddl.ProxyCommand{Verb: ddl.ShowStatus, Show: true, HasPattern: true, Pattern: addr("a%")}},
		{"show seqproxy variables LIKE '';", ddl.ProxyCommand{Verb: ddl.ShowVariables, Show: true, HasPattern: true, Pattern: addr("")}},
		{"show seqproxy sessions", ddl.ProxyCommand{Verb: ddl.ShowSessions, Show: true}},
		{"show seqproxy nodes", ddl.ProxyCommand{Verb: ddl.ShowNodes, Show: true}},
		{"show seqproxy shards", ddl.ProxyCommand{Verb: ddl.ShowShards, Show: true}},
		{"show seqproxy pools", ddl.ProxyCommand{Verb: ddl.ShowPools, Show: true}},
		{"show seqproxy users", ddl.ProxyCommand{Verb: ddl.ShowUsers, Show: true}},
		{"show seqproxy config", ddl.ProxyCommand{Verb: ddl.ShowConfig, Show: true}},
		{"show seqproxy config diff", ddl.ProxyCommand{Verb: ddl.ShowConfigDiff, Show: true}},
		{"seqproxy reload", ddl.ProxyCommand{Verb: ddl.ReloadConfig}},
		{"SEQPROXY Reload /* now */ tls;", ddl.ProxyCommand{Verb: ddl.ReloadConfig, Word: "TLS"}},
		{"seqproxy pause", ddl.ProxyCommand{Verb: ddl.PauseShard}},
		{"seqproxy pause shard photos0", ddl.ProxyCommand{Verb: ddl.PauseShard, Shard: addr("photos0")}},
		{"seqproxy pause shard 'a b'", ddl.ProxyCommand{Verb: ddl.PauseShard, Shard: addr("a b")}},
		{"SEQPROXY RESUME;", ddl.ProxyCommand{Verb: ddl.ResumeShard}},
		{"seqproxy resume shard `plan`", ddl.ProxyCommand{Verb: ddl.ResumeShard, Shard: addr("plan")}},
		{"seqproxy resume shard plan", ddl.ProxyCommand{Verb: ddl.ResumeShard, Shard: addr("plan")}},
		{"seqproxy shutdown", ddl.ProxyCommand{Verb: ddl.ShutdownProxy}},
		{"seqproxy shutdown Wait_For_Clients", ddl.ProxyCommand{Verb: ddl.ShutdownProxy, Word: "WAIT_FOR_CLIENTS"}},
		{"seqproxy shutdown immediate;", ddl.ProxyCommand{Verb: ddl.ShutdownProxy, Word: "IMMEDIATE"}},
		{"seqproxy flush logs", ddl.ProxyCommand{Verb: ddl.FlushLogs}},
	} {
		st := analyze(c.sql)
		if st.Kind != Seqproxy || !st.AboutSequences() || st.Words != SequenceStatement || st.Sequence.Problem != "" {
			t.Fatalf("%q: got kind %s, words %b, problem %q", c.sql, kindNames[st.Kind], st.Words, st.Sequence.Problem)
		}
		if !reflect.DeepEqual(*st.Proxy, c.want) {
			t.Errorf("%q:\n got %+v\nwant %+v", c.sql, *st.Proxy, c.want)
		}
		alone := strings.TrimSuffix(c.sql, ";")
		for _, sql := range []string{alone + "; select 1", "select 1; " + alone} {
			if st := analyze(sql); st.Kind != Multi || st.Words&SequenceStatement == 0 || st.Proxy == nil {
				t.Errorf("%q: got kind %s and words %b, want Multi with SequenceStatement", sql, kindNames[st.Kind], st.Words)
			}
		}
	}
}

// A mistyped word gets an error that lists the right ones, and no server sees the text.
func TestAMistypedStatementToTheProxyListsTheWords(t *testing.T) {
	const all = "what follows SEQPROXY; there is ADD SEQUENCE SERVER, REMOVE SEQUENCE SERVER, RELOAD, PAUSE, RESUME, SHUTDOWN, FLUSH LOGS"
	const shows = "what follows SHOW SEQPROXY; there is HELP, VERSION, STATUS, VARIABLES, SESSIONS, NODES, SHARDS, POOLS, USERS, CONFIG DIFF, CONFIG, SEQUENCE SERVERS"
	const force, writers = "FORCE [ABOVE n]", "WITH DIRECT WRITERS STOPPED"
	for sql, want := range map[string]string{
		"seqproxy":                                                               all,
		"seqproxy frobnicate":                                                    all,
		"seqproxy reload ssl":                                                    "RELOAD, which may be followed by TLS",
		"seqproxy reload tls tls":                                                "RELOAD, which may be followed by TLS",
		"seqproxy pause photos0":                                                 "PAUSE, which may be followed by SHARD name",
		"seqproxy pause shard":                                                   "SHARD needs the name of a shard",
		"seqproxy pause shard ''":                                                "SHARD needs the name of a shard",
		"seqproxy pause shard a b":                                               "PAUSE, which may be followed by SHARD name",
		"seqproxy resume plans":                                                  "RESUME, which may be followed by SHARD name",
		"seqproxy shutdown now":                                                  "SHUTDOWN, which may be followed by WAIT_FOR_CLIENTS | IMMEDIATE",
		"seqproxy shutdown immediate immediate":                                  "SHUTDOWN, which may be followed by WAIT_FOR_CLIENTS | IMMEDIATE",
		"seqproxy flush":                                                         all,
		"seqproxy flush logs now":                                                "FLUSH LOGS, followed by nothing",
		"seqproxy 'add' sequence server 'a:1'":                                   all,
		"seqproxy `add` sequence server 'a:1'":                                   all,
		"seqproxy add sequence servers 'a:1'":                                    all,
		"show seqproxy":                                                          shows,
		"show seqproxy sequence server":                                          shows,
		"show seqproxy sequence servers like 'a'":                                "SEQUENCE SERVERS, followed by nothing",
		"show seqproxy confi":                                                    shows,
		"show seqproxy config of":                                                "CONFIG, followed by nothing",
		"show seqproxy sessions like 'a'":                                        "SESSIONS, followed by nothing",
		"show seqproxy status like":                                              "LIKE needs a string",
		"show seqproxy status like ?":                                            "LIKE needs a string",
		"show seqproxy status where a = 1":                                       "STATUS, which may be followed by LIKE 'pattern'",
		"show seqproxy status like 'a' like 'b'":                                 "STATUS, which may be followed by LIKE 'pattern'",
		"seqproxy add sequence server":                                           "ADD SEQUENCE SERVER needs an address in quotes, as in 'db2.example:3306'",
		"seqproxy add sequence server db2":                                       "ADD SEQUENCE SERVER needs an address in quotes, as in 'db2.example:3306'",
		"seqproxy add sequence server ?":                                         "ADD SEQUENCE SERVER needs an address in quotes, as in 'db2.example:3306'",
		"seqproxy add sequence server 'a:1' soon":                                "ADD SEQUENCE SERVER, which may be followed by " + writers,
		"seqproxy remove sequence server 'a:1' force above":                      "ABOVE needs a whole number",
		"seqproxy remove sequence server 'a:1' force above 1 margin 1":           "REMOVE SEQUENCE SERVER, which may be followed by " + force + ", " + writers,
		"seqproxy remove sequence server 'a:1' force above 1 force":              "FORCE twice",
		"seqproxy remove sequence server 'a:1' force above -1":                   "ABOVE needs a whole number",
		"seqproxy remove sequence server 'a:1' force above 18446744073709551616": "ABOVE needs a whole number",
		"seqproxy remove sequence server 'a:1' force margin 1":                   "REMOVE SEQUENCE SERVER, which may be followed by " + force + ", " + writers,
		"seqproxy remove sequence server 'a:1' with writers":                     "WITH must be followed by DIRECT WRITERS STOPPED",
		"seqproxy remove sequence server 'a:1' with direct writers":              "WITH must be followed by DIRECT WRITERS STOPPED",
		"seqproxy remove sequence server 'a:1' with direct writers step 2":       "WITH must be followed by DIRECT WRITERS STOPPED",
		"seqproxy remove sequence server 'a:1' with direct writers stopped with direct writers stopped": "WITH DIRECT WRITERS twice",
		"seqproxy change sequence servers interleave step":                                              all,
		"seqproxy resume plan now": "RESUME, which may be followed by SHARD name",
	} {
		st := analyze(sql)
		if st.Kind != Seqproxy || !st.AboutSequences() || st.Proxy.Verb != 0 || st.Sequence.Problem != want {
			t.Errorf("%q: got kind %s, verb %d, problem %q, want %q", sql, kindNames[st.Kind], st.Proxy.Verb, st.Sequence.Problem, want)
		}
	}
	for sql, want := range map[string]Kind{
		"show tables like 'seqproxy'":     Show,
		"show create table seqproxy":      Show,
		"select seqproxy from seqproxy":   Select,
		"use seqproxy":                    Use,
		"seqproxy: begin not atomic end":  Other,
		"create database seqproxy":        CreateDatabase,
		"alter table seqproxy add a int":  OtherDDL,
		"insert into seqproxy values (1)": Insert,
	} {
		if st := analyze(sql); st.Kind != want || st.AboutSequences() || st.Proxy != nil {
			t.Errorf("%q: got kind %s, want %s", sql, kindNames[st.Kind], kindNames[want])
		}
	}
}

func TestARememberedStatementToTheProxyIsItsOwnersAlone(t *testing.T) {
	c := NewCache(8)
	sql := []byte("SEQPROXY REMOVE SEQUENCE SERVER 'db2.example:3306' FORCE ABOVE 7000000000")
	var one, two Statement
	for range 3 {
		c.Analyze(&one, sql, lex.Mode{})
	}
	c.Analyze(&two, sql, lex.Mode{})
	one.Proxy.Address = nil
	if one.Proxy == two.Proxy || string(two.Proxy.Address) != "db2.example:3306" || two.Proxy.Above.Value != 7000000000 {
		t.Errorf("got %+v and %+v", one.Proxy, two.Proxy)
	}
	if one.Analyze([]byte("select 1"), lex.Mode{}); one.Proxy != nil {
		t.Error("the next statement has a command of the one before")
	}
}

func TestEveryStatementToTheProxyIsListedAsItIsRead(t *testing.T) {
	options := regexp.MustCompile(` \[.*`)
	listed := make(map[ddl.ProxyVerb]bool)
	for _, p := range ddl.ProxyStatements() {
		listed[p.Verb] = true
		if p.Help == "" {
			t.Errorf("%s: the help has no description", p.Text)
		}
		plain := options.ReplaceAllString(p.Text, "")
		st := analyze(plain)
		if st.Kind != Seqproxy || st.Proxy.Verb != p.Verb || st.Proxy.Show != p.Show {
			t.Errorf("%s: got %+v", plain, st.Proxy)
		}
	}
	for verb := ddl.ShowSequenceServers; verb <= ddl.ShowConfigDiff; verb++ {
		if !listed[verb] {
			t.Errorf("verb %d is not listed", verb)
		}
	}
}
