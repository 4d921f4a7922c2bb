package conf

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// minimal is the shortest valid configuration.
const minimal = `
[[user]]
name = "app"
[[sequence.server]]
address = "127.0.0.1:3306"
user = "seq"
`

func parse(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Parse("f.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// parseProblems returns the lines of the error for a text.
func parseProblems(t *testing.T, text string) []string {
	t.Helper()
	c, err := Parse("f.toml", []byte(text))
	if err == nil {
		return nil
	}
	if c != nil {
		t.Error("got a config together with the error")
	}
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("got an error of type %T, want *Error", err)
	}
	if e.File != "f.toml" {
		t.Errorf("file: got %q, want f.toml", e.File)
	}
	for line := range strings.Lines(err.Error()) {
		if !strings.HasPrefix(line, "f.toml: ") {
			t.Errorf("a line does not name the file: %q", line)
		}
	}
	return e.Problems
}

func TestAMinimalFileGetsTheDefaults(t *testing.T) {
	c := parse(t, minimal)
	want := Default()
	want.file = "f.toml"
	want.Users = []User{{Name: "app"}}
	want.Sequence.Servers = []SequenceServer{{Address: "127.0.0.1:3306", User: "seq", Database: "seqproxy"}}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
	if !c.Users[0].Password.IsEmpty() || c.IsAdmin("app") {
		t.Error("a user without keys has a password or is an admin")
	}
}

func TestEveryKeyIsRead(t *testing.T) {
	t.Setenv("CONF_TEST_PASSWORD", "from env")
	t.Setenv("CONF_TEST_WORKER", "7")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p"), []byte("from file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Parse(filepath.Join(dir, "f.toml"), []byte(`
listen = "[::1]:0"
admin_users = ["a", "b"]
monitor_users = ["c"]
default_shard = "s1"
connect_timeout = "1s"
login_timeout = "2s"
write_timeout = "1h30m"
pause_timeout = "7s"
max_statement = "64KiB"
statement_memory = "2MiB"
max_connections = 7
max_user_connections = 6
max_logins = 5
failed_logins = 4
failed_login_delay = "3s"
failed_login_exempt = ["127.0.0.1"]
unknown_user = "backend"
proxy_protocol_from = ["10.0.0.0/8", "::1"]
compression = false
last_insert_id = "exact"
unknown_sequence = "relay"
multi_row = "first"
[drain]
grace = "4s"
timeout = "0s"
[admin]
listen = "localhost:0"
data_port = false
[log]
level = "debug"
format = "json"
output = "/tmp/seqproxy.log"
slow_statement = "250ms"
[http]
listen = "127.0.0.1:9104"
[[user]]
name = "a"
password = "typed"
old_password_env = "CONF_TEST_PASSWORD"
schema = "x"
max_connections = 2
sequences = ["photos", "video*"]
[[user]]
name = "b"
password_file = "p"
old_password = "typed too"
[sequence]
database = "d"
table = "t"
create_table = false
cache = 5
outage_cover = "0s"
allocate_timeout = "250ms"
worker_id_env = "CONF_TEST_WORKER"
durability = "relaxed"
interleave = "step"
block = 77
direct_writers = false
order_requires_replica = false
[[sequence.server]]
address = "unix:/run/s.sock"
user = "u"
password_env = "CONF_TEST_PASSWORD"
database = "other"
[[ticket]]
table = "other.t"
[[ticket]]
table = "flickr.tickets64"
[[shard]]
name = "s0"
schemas = ["x", "y"]
user = "su"
password = ""
[[shard.node]]
address = "db0:3306"
[[shard]]
name = "s1"
[[shard.node]]
address = "[fe80::1]:3306"
`))
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		Listen: "[::1]:0", AdminUsers: []string{"a", "b"}, MonitorUsers: []string{"c"}, DefaultShard: "s1",
		ConnectTimeout: Duration(time.Second), LoginTimeout: Duration(2 * time.Second),
		WriteTimeout: Duration(90 * time.Minute), PauseTimeout: Duration(7 * time.Second), Drain: Drain{Grace: Duration(4 * time.Second)},
		MaxStatement: 65536, StatementMemory: 2 << 20, MaxConnections: 7, MaxUserConnections: 6, MaxLogins: 5,
		FailedLogins: 4, FailedLoginDelay: Duration(3 * time.Second), FailedLoginExempt: []Network{"127.0.0.1"},
		ProxyProtocolFrom: []Network{"10.0.0.0/8", "::1"},
		UnknownUser:       UnknownUserBackend,
		LastInsertID:      LastInsertIDExact, UnknownSequence: UnknownSequenceRelay, MultiRow: MultiRowFirst,
		Log:   Log{Level: "debug", Format: "json", Output: "/tmp/seqproxy.log", SlowStatement: Duration(250 * time.Millisecond)},
		HTTP:  HTTP{Listen: "127.0.0.1:9104"},
		Admin: Admin{Listen: "localhost:0"},
		Users: []User{
			{Name: "a", Credential: Credential{Password: NewSecret("typed")}, OldPassword: NewSecret("from env"), OldPasswordEnv: "CONF_TEST_PASSWORD", Schema: "x", MaxConnections: 2, Sequences: []string{"photos", "video*"}},
			{Name: "b", Credential: Credential{Password: NewSecret("from file"), PasswordFile: filepath.Join(dir, "p")}, OldPassword: NewSecret("typed too")},
		},
		Sequence: Sequence{
			Database: "d", Table: "t", CreateTable: false, Cache: 5, OutageCover: 0,
			AllocateTimeout: Duration(250 * time.Millisecond), WorkerID: 7, WorkerIDEnv: "CONF_TEST_WORKER", Durability: DurabilityRelaxed, Interleave: InterleaveStep, Block: 77,
			Servers: []SequenceServer{{
				Address: "unix:/run/s.sock", User: "u", Database: "other",
				Credential: Credential{Password: NewSecret("from env"), PasswordEnv: "CONF_TEST_PASSWORD"},
			}},
		},
		Tickets: []Ticket{{Table: "other.t"}, {Table: "flickr.tickets64"}},
		Shards: []Shard{
			{
				Name: "s0", Schemas: []string{"x", "y"}, User: "su",
				Credential: Credential{Password: NewSecret("")}, Nodes: []Node{{Address: "db0:3306"}},
			},
			{Name: "s1", Nodes: []Node{{Address: "[fe80::1]:3306"}}},
		},
		file: filepath.Join(dir, "f.toml"),
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %#v\nwant %#v", c, want)
	}
	if got := c.Users[1].Password.Reveal(); got != "from file" {
		t.Errorf("password from the file: got %q", got)
	}
	if !c.IsAdmin("b") || c.IsAdmin("c") || c.IsMonitor("b") || !c.IsMonitor("c") {
		t.Error("IsAdmin and IsMonitor do not follow admin_users and monitor_users")
	}
	if c.Shard("s1") != &c.Shards[1] || c.Shard("s2") != nil || c.User("b") != &c.Users[1] || c.User("c") != nil {
		t.Error("Shard or User does not find what is there")
	}
}

func TestOneShardIsTheDefaultShard(t *testing.T) {
	c := parse(t, minimal+"[[shard]]\nname='only'\n[[shard.node]]\naddress='h:1'")
	if c.DefaultShard != "only" {
		t.Errorf("default shard: got %q, want only", c.DefaultShard)
	}
}

func TestProblemsNameKeyValueAndWhatIsAllowed(t *testing.T) {
	t.Setenv("CONF_TEST_POD", "proxy-3")
	const shards = "[[shard]]\nname='a'\nschemas=['x']\n[[shard.node]]\naddress='h:1'\n[[shard]]\nname='b'\nschemas=['y']\n[[shard.node]]\naddress='h:2'\n"
	for _, test := range []struct{ text, want string }{
		// form
		{"listen = ", "line 1: unexpected EOF; expected value"},
		{"[[user]]\nname = 'a'\npassword = hunter2", `line 3: expected value but found "..." instead`},
		{"[[user]]\nname = 'a'\npassword = 0815", `line 3: Invalid integer "...": cannot have leading zeroes`},
		{"listen = 'a:1'\nlisten = 'b:1'", "line 2: Key 'listen' has already been defined."},
		{"max_connections = '5'", "max_connections: must be of type integer, is of type string"},
		{"listen = 5", "listen: must be of type string, is of type integer"},
		{"admin_users = 'root'", "admin_users: must be of type list, is of type string"},
		{"[[log]]", "log: must be of type table, is of type list of tables"},
		{"[sequence]\ncreate_table = 'yes'", "sequence.create_table: must be of type boolean, is of type string"},
		{"[user]\nname = 'x'", "user: is a list: write [[user]], not [user]"},
		{"[[shard]]\n[shard.node]\naddress = 'h:1'", "shard.node: is a list: write [[shard.node]], not [shard.node]"},
		{"[sequence.server]", "sequence.server: is a list: write [[sequence.server]], not [sequence.server]"},
		{"[[user]]\npassword = 1234", "user.password: must be a string in quotes"},
		{"login_timeout = 5", `login_timeout: must be a duration such as "15m", "30s" or "250ms", is "5"`},
		{"login_timeout = '-5s'", `login_timeout: must be a duration such as "15m", "30s" or "250ms", is "-5s"`},
		{"max_statement = '16MB'", `max_statement: must be a size such as "16MiB" (units B, KiB, MiB, GiB), is "16MB"`},
		// unknown keys
		{minimal + "[log]\nlevl = 'info'", `unknown key "log.levl"; did you mean "log.level"?`},
		{"LISTEN = '127.0.0.1:1'" + minimal, `unknown key "LISTEN"; did you mean "listen"?`},
		{"cache = 5\n" + minimal, `unknown key "cache"; did you mean "sequence.cache"?`},
		{minimal + "[frobnicate]\na = 1\nb = 2", `unknown key "frobnicate"`},
		{minimal + "[drain]\ngrace = '-1s'", `drain.grace: must be a duration such as "15m", "30s" or "250ms", is "-1s"`},
		{minimal + "[drain]\ntimeout = '-1s'", `drain.timeout: must be a duration such as "15m", "30s" or "250ms", is "-1s"`},
		{"[[users]]\nname = 'x'" + minimal, `unknown key "users"; did you mean "user"?`},
		// values
		{"listen = '4306'" + minimal, `listen: must be host:port such as "127.0.0.1:4306", is "4306"`},
		{"listen = '127.0.0.1:65536'" + minimal, `listen: must be host:port such as "127.0.0.1:4306", is "127.0.0.1:65536"`},
		{minimal + "[http]\nlisten = '4308'", `http.listen: must be host:port such as "127.0.0.1:4308", or empty, is "4308"`},
		{minimal + "[http]\nlisten = 'localhost:4306'", `http.listen: must be another address than listen, is "localhost:4306"`},
		{minimal + "[http]\nlisten = ':4307'", `http.listen: must be another address than admin.listen, is ":4307"`},
		{"listen = '10.0.0.1:4306'" + minimal + "[http]\nlisten = '0.0.0.0:4306'", `http.listen: must be another address than listen, is "0.0.0.0:4306"`},
		{"listen = '0.0.0.0:4307'" + minimal, `admin.listen: must be another address than listen, is "127.0.0.1:4307"`},
		{"connect_timeout = '0s'" + minimal, "connect_timeout: must be >= 1ms, is 0s"},
		{"login_timeout = '99ms'" + minimal, "login_timeout: must be >= 100ms, is 99ms"},
		{"statement_memory = '1023KiB'" + minimal, "statement_memory: must be between 1MiB and 1024GiB, is 1023KiB"},
		{"max_statement = '2GiB'" + minimal, "max_statement: must be between 1KiB and 1GiB, is 2GiB"},
		{"max_connections = 0" + minimal, "max_connections: must be >= 1, is 0"},
		{"max_user_connections = -1" + minimal, "max_user_connections: must be >= 0, is -1"},
		{"max_logins = -1" + minimal, "max_logins: must be between 0 and 1000000, is -1"},
		{"max_logins = 1000001" + minimal, "max_logins: must be between 0 and 1000000, is 1000001"},
		{"failed_logins = -1" + minimal, "failed_logins: must be >= 0, is -1"},
		{"failed_login_delay = '0s'" + minimal, "failed_login_delay: must be >= 1ms, is 0s"},
		{"failed_login_exempt = ['10.0.0.0/33']" + minimal, `failed_login_exempt: must be an address or a network such as "10.0.0.7", "10.0.0.0/8" or "fd00::/8", is "10.0.0.0/33"`},
		{"multi_row = 'all'" + minimal, `multi_row: must be "refuse" or "first", is "all"`},
		{"last_insert_id = 'never'" + minimal, `last_insert_id: must be "auto" or "exact", is "never"`},
		{"unknown_sequence = ''" + minimal, `unknown_sequence: must be "error", "create" or "relay", is ""`},
		{minimal + "[log]\nlevel = 'Info'", `log.level: must be "debug", "info", "warn" or "error", is "Info"`},
		{minimal + "[log]\noutput = '/none/seqproxy.log'", `log.output: must be "stderr" or a file in a directory that exists, is "/none/seqproxy.log"`},
		{minimal + "[log]\noutput = ''", `log.output: must be "stderr" or a file in a directory that exists, is ""`},
		{minimal + "[tls]\ncert_file = 'c'", "tls: key_file is missing; cert_file needs it"},
		{minimal + "[tls]\nkey_file = 'c'", "tls: cert_file is missing; key_file needs it"},
		{minimal + "[tls]\nkey_file = '/none/k'\ncert_file = '/none/c'", `tls: cert_file: stat /none/c: no such file or directory`},
		// users
		{minimal + "[[user]]\nname = 'app'", `user["app"].name: must be given once, is there twice`},
		{minimal + "[[user]]", "user #2.name: is missing"},
		{minimal + "[[user]]\nname = 'b'\nsequences = ['a', 'a*b']", `user["b"].sequences: must be names of sequences, or their beginning with one * behind it, has "a*b"`},
		{"admin_users = ['root']" + minimal, `admin_users: must name users that are there as [[user]], "root" is not`},
		{"monitor_users = ['watch']" + minimal, `monitor_users: must name users that are there as [[user]], "watch" is not`},
		{minimal + "[admin]\nlisten = '4307'", `admin.listen: must be host:port such as "127.0.0.1:4307", or empty, is "4307"`},
		{minimal + "[admin]\nlisten = '127.0.0.1:4306'", `admin.listen: must be another address than listen, is "127.0.0.1:4306"`},
		{minimal + "[admin]\nlisten = ''\ndata_port = false", `admin.data_port: must be true without admin.listen, or statements to the proxy are answered nowhere`},
		{"unknown_user = 'ask'" + minimal, `unknown_user: must be "refuse" or "backend", is "ask"`},
		{"unknown_user = 'backend'" + minimal, `unknown_user: must be "refuse" without a [[shard]]: there is no server that could check a login`},
		{minimal + "[[user]]\nname = 'b'\npassword = ''\npassword_env = 'X'", `user["b"]: at most one of password, password_file and password_env is allowed, has password and password_env`},
		{minimal + "[[user]]\nname = 'b'\npassword_env = 'CONF_TEST_UNSET'", `user["b"].password_env: the environment variable CONF_TEST_UNSET is not set`},
		{minimal + "[tls]\nrequired = true", `tls: required needs cert_file and key_file`},
		{minimal + "[tls]\nclient_ca_file = '/none/ca'", `tls: client_ca_file needs cert_file and key_file`},
		{minimal + "[[user]]\nname = 'b'\nrequire_tls = true", `user["b"].require_tls: needs the table [tls], without which no client can use TLS`},
		{minimal + "[[user]]\nname = 'b'\nrequire_certificate = true", `user["b"]: a certificate is required of the user, but tls.client_ca_file is missing, so none can be shown`},
		{minimal + "[[user]]\nname = 'b'\ncertificate_issuer = '/CN=x'", `user["b"]: a certificate is required of the user, but tls.client_ca_file is missing, so none can be shown`},
		{"proxy_protocol_from = ['10.0.0.1/8']" + minimal, `proxy_protocol_from: must be an address, or the network "10.0.0.0/8", is "10.0.0.1/8"`},
		{"proxy_protocol_from = ['balancer']" + minimal, `proxy_protocol_from: must be an address or a network such as "10.0.0.7", "10.0.0.0/8" or "fd00::/8", is "balancer"`},
		{minimal + "[[user]]\nname = 'b'\nold_password = 'x'\nold_password_env = 'X'", `user["b"]: at most one of old_password, old_password_file and old_password_env is allowed, has old_password and old_password_env`},
		{minimal + "[[user]]\nname = 'b'\npassword = 'x'\nold_password = ''", `user["b"].old_password: must not be empty: it would let in anybody without a password`},
		{minimal + "[[user]]\nname = 'b'\nold_password = 'x'", `user["b"].old_password: needs a password beside it, the new one`},
		{minimal + "[[user]]\nname = 'b'\npassword = 'x'\nold_password_file = '/none/p'", `user["b"].old_password_file: open /none/p: no such file or directory`},
		{minimal + "[[user]]\nname = 'b'\npassword_file = '/none/p'", `user["b"].password_file: open /none/p: no such file or directory`},
		// sequence
		{minimal + "[sequence]\ncache = 0", "sequence.cache: must be between 1 and 1000000000000, is 0"},
		{minimal + "[sequence]\ncache = -1", "sequence.cache: must be between 1 and 1000000000000, is -1"},
		{minimal + "[sequence]\ntable = ''", "sequence.table: must not be empty"},
		{minimal + "[sequence]\ntable = '" + strings.Repeat("x", 54) + "'", `sequence.table: must be at most 53 characters, since a table <table>_plan_start stands beside it, is "` + strings.Repeat("x", 54) + `"`},
		{minimal + "[sequence]\ndatabase = '" + strings.Repeat("x", 65) + "'", `sequence.database: must be a name of at most 64 characters that does not end in a space, is "` + strings.Repeat("x", 65) + `"`},
		{minimal + "[sequence]\noutage_cover = '169h'", "sequence.outage_cover: must be between 0s and 168h, is 169h"},
		{minimal + "[sequence]\ndurability = 'none'", `sequence.durability: must be "strict" or "relaxed", is "none"`},
		{minimal + "[sequence]\ndirect_writers = 1", "sequence.direct_writers: must be of type boolean, is of type integer"},
		{minimal + "[sequence]\nworker_id = 65536", "sequence.worker_id: must be 0 to 65535, or -1 for any, is 65536"},
		{minimal + "[sequence]\nworker_id = -2", "sequence.worker_id: must be 0 to 65535, or -1 for any, is -2"},
		{minimal + "[sequence]\nworker_id = 1\nworker_id_env = 'X'", "sequence.worker_id_env: at most one of worker_id and worker_id_env is allowed, has both"},
		{minimal + "[sequence]\nworker_id_env = 'CONF_TEST_UNSET'", "sequence.worker_id_env: the environment variable CONF_TEST_UNSET is not set"},
		{minimal + "[sequence]\nworker_id_env = 'CONF_TEST_POD'", "sequence.worker_id_env: the environment variable CONF_TEST_POD must be a number from 0 to 65535, and is not"},
		{minimal + "[sequence]\nallocate_timeout = '0s'", "sequence.allocate_timeout: must be >= 1ms, is 0s"},
		{"[[user]]\nname = 'a'", "sequence.server: one [[sequence.server]] is required: it holds the table that keys are reserved from"},
		{minimal + "[[sequence.server]]\naddress = '127.0.0.1:3306'\nuser = 'u'", "sequence.server #2.address: \"127.0.0.1:3306\" is the address of sequence.server #1, too"},
		{minimal + "[sequence]\ninterleave = 'both'", `sequence.interleave: must be "block" or "step", is "both"`},
		{minimal + "[sequence]\nblock = 0", `sequence.block: must be 1 to 1000000000000, is 0`},
		{"[[user]]\nname = 'a'\n[[sequence.server]]\naddress = 'h:1'", "sequence.server #1.user: is missing"},
		{"[[user]]\nname = 'a'\n[[sequence.server]]\naddress = '127.0.0.1'\nuser = 'u'", `sequence.server #1.address: must be host:port or unix:/path/to/socket, is "127.0.0.1"`},
		{"[[user]]\nname = 'a'\n[[sequence.server]]\naddress = ':3306'\nuser = 'u'", `sequence.server #1.address: must name a host before the port, is ":3306"`},
		{"[[user]]\nname = 'a'\n[[sequence.server]]\naddress = 'unix:s.sock'\nuser = 'u'", `sequence.server #1.address: must be unix: and an absolute path, is "unix:s.sock"`},
		{"[[user]]\nname = 'a'\n[[sequence.server]]\naddress = 'localhost:4306'\nuser = 'u'", `sequence.server #1.address: must not be the proxy's own listen address, is "localhost:4306"`},
		{minimal + "nodes = ['h:1', 'h:2']", "sequence.server #1.nodes: and address exclude each other: name every address in nodes"},
		{"[[user]]\nname = 'a'\n[[sequence.server]]\nnodes = ['h:1', 'h:1']\nuser = 'u'", `sequence.server #1.nodes: must name each address once, names "h:1" twice`},
		{"[[user]]\nname = 'a'\n[[sequence.server]]\nnodes = ['h:1', 'h']\nuser = 'u'", `sequence.server #1.nodes: must be host:port or unix:/path/to/socket, is "h"`},
		{
			minimal + "[[sequence.server]]\nnodes = ['h:1', 'h:2']\nuser = 'u'",
			"sequence.server #2.nodes: must not be there beside another [[sequence.server]]: keep one group, or have several servers of one address each",
		},
		// shards
		{minimal + "[[ticket]]", `ticket #1.table: is missing`},
		{minimal + "[[ticket]]\ntable='tickets64'", `ticket["tickets64"].table: must be schema.table, is "tickets64"; only the table of the sequences, "sequence", may stand alone`},
		{minimal + "[[ticket]]\ntable='.tickets64'", `ticket[".tickets64"].table: must be schema.table, is ".tickets64"; only the table of the sequences, "sequence", may stand alone`},
		{minimal + "[[ticket]]\ntable='flickr.'", `ticket["flickr."].table: must not be empty`},
		{minimal + "[[ticket]]\ntable='seqproxy.sequence'\n[[ticket]]\ntable='sequence'", `ticket["sequence"].table: must be given once, is there twice`},
		{minimal + shards, "default_shard: is missing; with more than one [[shard]] it must be one of a, b"},
		{"default_shard = 'c'" + minimal + shards, `default_shard: must be one of a, b, is "c"`},
		{"default_shard = 'c'" + minimal, `default_shard: must name a [[shard]], but there is none; is "c"`},
		{"default_shard = 'a'" + minimal + shards + "[[shard]]\nname = 'c'\nschemas = ['x']\n[[shard.node]]\naddress='h:3'", `shard["c"].schemas: a schema has one owner, but "x" is owned by shard["a"] already`},
		{"default_shard = 'a'" + minimal + shards + "[[shard]]\nname = 'c'\nschemas = ['X']\n[[shard.node]]\naddress='h:3'", `shard["c"].schemas: a schema has one owner, but "X" is owned by shard["a"] already, as "x"; servers may ignore letter case`},
		{"default_shard = 'a'" + minimal + "[[shard]]\nname = 'a'\nschemas = ['Größe', 'GRÖSSE', 'GRÖßE']\n[[shard.node]]\naddress='h:3'", `shard["a"].schemas: a schema has one owner, but "GRÖßE" is owned by shard["a"] already, as "Größe"; servers may ignore letter case`},
		{"default_shard = 'a'" + minimal + shards + "[[shard]]\nname = 'a'\n[[shard.node]]\naddress='h:3'", `shard["a"].name: must be given once, is there twice`},
		{minimal + "[[shard]]\nname = 'a b'\n[[shard.node]]\naddress='h:3'", `shard["a b"].name: must be letters, digits, _, - and . (at most 64), is "a b"`},
		{minimal + "[[shard]]\nname = 'a'", `shard["a"].node: one [[shard.node]] is required`},
		{minimal + "[[shard]]\nname = 'a'\n[[shard.node]]\naddress='h:3'\n[[shard.node]]\naddress='h:4'", `shard["a"].node: exactly one [[shard.node]] per shard is supported in this version, there are 2`},
		{minimal + "[[shard]]\nname = 'a'\n[[shard.node]]", `shard["a"].node #1.address: is missing`},
		{minimal + "[[shard]]\nname = 'a'\npassword='x'\n[[shard.node]]\naddress='h:3'", `shard["a"].user: is missing; a password of the shard needs it`},
		{minimal + "[[shard]]\nname = 'a'\n[[shard.node]]\naddress='127.0.0.1:4306'", `shard["a"].node #1.address: must not be the proxy's own listen address, is "127.0.0.1:4306"`},
	} {
		got := parseProblems(t, test.text)
		if len(got) != 1 || got[0] != test.want {
			t.Errorf("%s\ngot  %q\nwant %q", test.text, got, test.want)
		}
	}
}

// TestWhatSecuresIsNotSwitchedOffByAnEmptyValue tries what a template leaves if a variable of its
// own is missing.
func TestWhatSecuresIsNotSwitchedOffByAnEmptyValue(t *testing.T) {
	server := []string{"password_file", "password_env", "tls", "tls_ca_file", "tls_cert_file", "tls_key_file", "public_key_file"}
	for _, test := range []struct {
		text, place string
		keys        []string
	}{
		{"[[user]]\nname = 'a'\n[[user]]\nname = 'b'\n", `user["b"]`, []string{"password_file", "password_env", "old_password_file", "old_password_env", "certificate_subject", "certificate_issuer"}},
		{"[[sequence.server]]\n[[sequence.server]]\n", "sequence.server #2", server},
		{"[[shard]]\nname = 'a'\n[[shard]]\n", "shard #2", server},
		{"[tls]\n", "tls", []string{"cert_file", "key_file", "client_ca_file"}},
		{"tls.", "tls", []string{"cert_file"}},
	} {
		for _, key := range test.keys {
			text, want := test.text+key+" = ''", test.place+"."+key+": must not be empty; leave the key out to do without it"
			if got := parseProblems(t, text); !slices.Contains(got, want) {
				t.Errorf("%s: got %q, want %q in it", text, got, want)
			}
		}
	}
	text, want := "user = [{name = 'b', password_file = ''}]", `user["b"].password_file: must not be empty`
	if got := parseProblems(t, text); len(got) == 0 || !strings.HasPrefix(got[0], want) {
		t.Errorf("%s: got %q, want %q", text, got, want)
	}
	if got := parseProblems(t, minimal+"password = ''\n[sequence]\nstate_dir = ''\nworker_id_env = ''\n[http]\nlisten = ''"); got != nil {
		t.Errorf("values that may be empty: got %q", got)
	}
}

// TestValuesAtTheirBoundsAreRight has the last value on this side of each bound.
func TestValuesAtTheirBoundsAreRight(t *testing.T) {
	for _, text := range []string{
		"login_timeout = '100ms'\nmax_logins = 1000000" + minimal,
		minimal + "[sequence]\noutage_cover = '168h'\ntable = '" + strings.Repeat("x", 53) + "'",
		"listen = '127.0.0.1:0'\nadmin.listen = '127.0.0.1:0'\nhttp.listen = ':0'" + minimal,
		"listen = '10.0.0.1:4306'\nadmin.listen = '10.0.0.2:4306'\nhttp.listen = '127.0.0.1:4306'" + minimal,
		"listen = ':4306'\nadmin.listen = ''\nhttp.listen = ''\nadmin.data_port = true" + minimal,
	} {
		if got := parseProblems(t, text); got != nil {
			t.Errorf("%s: got %q", text, got)
		}
	}
}

func TestAllProblemsAreReportedAtOnce(t *testing.T) {
	got := parseProblems(t, `
listen = "nowhere"
max_connections = -1
lst_insert_id = "auto"
[[user]]
name = ""
password_env = "CONF_TEST_UNSET"
[sequence]
cache = 0
`)
	want := []string{
		`unknown key "lst_insert_id"; did you mean "last_insert_id"?`,
		`user #1.password_env: the environment variable CONF_TEST_UNSET is not set`,
		`listen: must be host:port such as "127.0.0.1:4306", is "nowhere"`,
		`max_connections: must be >= 1, is -1`,
		`user #1.name: is missing`,
		`sequence.cache: must be between 1 and 1000000000000, is 0`,
		`sequence.server: one [[sequence.server]] is required: it holds the table that keys are reserved from`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAMissingFileIsNamed(t *testing.T) {
	if _, err := Load("/nonexistent/x.toml"); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "/nonexistent/x.toml") {
		t.Errorf("got %v", err)
	}
}

func TestWarningsNameWhatIsOpen(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil { // whatever the umask
			t.Fatal(err)
		}
		return path
	}
	write("open", "secret", 0o644)
	write("closed", "secret", 0o600)
	for _, test := range []struct {
		name, text string
		mode       os.FileMode
		want       []string
	}{
		{"nothing", minimal, 0o644, nil},
		{"closed password file", minimal + "password_file = 'closed'", 0o644, nil},
		{"open password file", minimal + "password_file = 'open'", 0o600, []string{"sequence.server #1.password_file: " + filepath.Join(dir, "open")}},
		{"password in an open file", minimal + "password = 'x'", 0o644, []string{"holds passwords and is readable by everybody"}},
		{"old password in an open file", minimal + "[[user]]\nname = 'b'\npassword_file = 'closed'\nold_password = 'x'", 0o644, []string{"holds passwords and is readable by everybody"}},
		{"headers from everywhere", "proxy_protocol_from = ['10.0.0.0/8', '::/0']" + minimal, 0o600, []string{`proxy_protocol_from: with "::/0" everybody may claim`}},
		{"password in a closed file", minimal + "password = 'x'", 0o600, nil},
		{"metrics for this machine, or none", minimal + "[http]\nlisten = ''", 0o600, nil},
		{"metrics for all", minimal + "[http]\nlisten = ':4308'", 0o600, []string{`http.listen: ":4308" lets other machines read`}},
		{"a monitor that is an admin", "admin_users = ['app']\nmonitor_users = ['app']" + minimal, 0o600, []string{`monitor_users: "app" is one of admin_users, too`}},
		{"an admin without a password, at an open address", "admin_users = ['app']" + minimal + "[[user]]\nname = 'other'\n[admin]\nlisten = ':4307'", 0o600, []string{`user["app"]: has no password, and admin.listen ":4307"`}},
		{"a state_dir that can be made", minimal + "[sequence]\nstate_dir = 'new'", 0o600, nil},
		{"a state_dir that cannot be made", minimal + "[sequence]\nstate_dir = '/none/state'", 0o600, []string{"sequence.state_dir: no proxy can start on this machine: /none/state is no directory"}},
		{"a state_dir that is a file", minimal + "[sequence]\nstate_dir = 'closed'", 0o600, []string{"sequence.state_dir: no proxy can start on this machine: " + filepath.Join(dir, "closed")}},
		{"no password and open to all", "listen = '0.0.0.0:4306'" + minimal, 0o600, []string{`user["app"]: has no password`}},
	} {
		c, err := Load(write("f.toml", test.text, test.mode))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if len(c.Warnings()) != len(test.want) {
			t.Errorf("%s: got %q, want %q", test.name, c.Warnings(), test.want)
			continue
		}
		for i, want := range test.want {
			if got := c.Warnings()[i]; !strings.Contains(got, want) || !strings.HasPrefix(got, c.File()+": ") {
				t.Errorf("%s: got %q, want it to name the file and %q", test.name, got, want)
			}
		}
	}
}

func TestTheExampleLoads(t *testing.T) {
	c, err := Parse("example.toml", []byte(Example))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Shards) != 2 || len(c.Users) != 2 || !c.IsAdmin("root") || c.Listen != Default().Listen {
		t.Errorf("got %+v", c)
	}
}

// exampleKey matches a key of the example, written or commented out.
var exampleKey = regexp.MustCompile(`^#?(\[\[?)?([a-z_.]+)(?:\]\]?$| = )`)

func TestTheExampleNamesEveryKeyAndNoOther(t *testing.T) {
	named := make(map[string]bool)
	section := ""
	for line := range strings.Lines(Example) {
		match := exampleKey.FindStringSubmatch(strings.TrimRight(line, "\n"))
		switch {
		case match == nil:
		case match[1] != "":
			section = match[2] + "."
			named[match[2]] = true
		default:
			named[section+match[2]] = true
		}
	}
	var keys []string
	for _, key := range Keys() {
		keys = append(keys, key.Name)
	}
	for _, key := range keys {
		if !named[key] {
			t.Errorf("the example does not name %s", key)
		}
		delete(named, key)
	}
	for key := range named {
		t.Errorf("the example names %s, which does not exist", key)
	}
	if !slices.Contains(keys, "sequence.server.password_file") || !slices.Contains(keys, "shard.node.address") {
		t.Errorf("the list of keys is not complete: %q", keys)
	}
}

func TestTheExampleShowsTheDefaults(t *testing.T) {
	// Commented-out lines before the first list of tables, and in [admin], [log] and [sequence],
	// are defaults; in the lists they are other possibilities.
	var text strings.Builder
	section := ""
	for line := range strings.Lines(Example) {
		match := exampleKey.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if match != nil && match[1] != "" {
			section = match[2]
		}
		if !slices.Contains([]string{"", "admin", "log", "sequence"}, section) {
			continue
		}
		if match != nil && (strings.HasPrefix(line, "#") || match[1] != "") {
			text.WriteString(strings.TrimPrefix(line, "#"))
		}
	}
	text.WriteString(minimal)
	got, want := parse(t, text.String()), parse(t, minimal)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the example's defaults\n%s\ngive  %+v\nwant %+v", text.String(), got, want)
	}
	if n := strings.Count(text.String(), " = "); n < 18 {
		t.Errorf("only %d defaults were found in the example", n)
	}
}

func TestTheServersAccountsNeedNoUsers(t *testing.T) {
	const rest = `
[[sequence.server]]
address = "db0:3306"
user = "seqproxy"
[[shard]]
name = "s0"
[[shard.node]]
address = "unix:/run/s.sock"
`
	c := parse(t, "admin_users = ['root']\nunknown_user = 'backend'"+rest)
	if len(c.Users) != 0 || !c.IsAdmin("root") || len(c.Warnings()) != 0 {
		t.Errorf("got %+v, %q, want no user, an admin and no warning", c, c.Warnings())
	}
	// The server may take a user without a password for the proxy.
	c = parse(t, rest+"[[user]]\nname = 'root'")
	if got := strings.Join(c.Warnings(), "\n"); !strings.Contains(got, `user["root"]: has no password`) || !strings.Contains(got, "Unix socket") {
		t.Errorf("a user without a password: got warnings %q", got)
	}
	c = parse(t, rest+"[[user]]\nname = 'root'\npassword = 'x'")
	if got := c.Warnings(); len(got) != 0 {
		t.Errorf("a user with a password: got warnings %q", got)
	}
}

func TestForBackendIsComplete(t *testing.T) {
	c := ForBackend("127.0.0.1:3306", "app", NewSecret("pw"), "")
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	// The same by a file.
	want := parse(t, `
admin_users = ["app"]
unknown_user = "backend"
[[user]]
name = "app"
password = "pw"
[[sequence.server]]
address = "127.0.0.1:3306"
user = "app"
password = "pw"
[[shard]]
name = "default"
[[shard.node]]
address = "127.0.0.1:3306"
`)
	want.file = ""
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
	// Over a Unix socket a server may trust the proxy.
	for password, users := range map[string]int{"pw": 1, "": 0} {
		c = ForBackend("unix:/run/s.sock", "root", NewSecret(password), "")
		if err := c.Validate(); err != nil || len(c.Users) != users || !c.IsAdmin("root") || c.UnknownUser != UnknownUserBackend {
			t.Errorf("over a Unix socket with the password %q: got %+v, %v, want %d users", password, c, err, users)
		}
	}
	c = ForBackend("127.0.0.1:4306", "", NewSecret(""), "127.0.0.1:4306")
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "own listen address") || !strings.Contains(err.Error(), "name: is missing") {
		t.Errorf("a proxy in front of itself without a user: got %v", err)
	}
}

func TestValidateSeesLaterChanges(t *testing.T) {
	c := parse(t, minimal)
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	c.MaxConnections = 0
	if err := c.Validate(); err == nil || err.Error() != "f.toml: max_connections: must be >= 1, is 0" {
		t.Errorf("got %v", err)
	}
}
