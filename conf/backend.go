package conf

// BackendShard is the name of the shard that [ForBackend] makes.
const BackendShard = "default"

// ForBackend returns the configuration of a proxy in front of one server, without a file.
// Everything goes to the server at address ("127.0.0.1:3306" or "unix:/path"). Clients log in with
// the server's accounts. The proxy reserves numbers as user, and user may change sequences. An
// empty listen means the default. The result is complete, but not validated.
//
// The proxy knows user's password. So clients can log in as user and get keys while the server is
// away. The exception is a user without a password over a Unix socket: the server may trust the
// proxy's system user there, so it checks user like all other accounts.
//
// The sequence table is on the same server, in the schema Sequence.Database, "seqproxy", not in a
// schema of the application. The account needs the right to create that schema. Otherwise an
// operator creates it once and grants SELECT, INSERT, UPDATE, DELETE and CREATE on it. So the proxy
// never touches an application's own table `sequence` by accident. To use that table, set
// Sequence.Database and Sequence.Servers[0].Database to its schema.
func ForBackend(address, user string, password Secret, listen string) *Config {
	c := Default()
	if listen != "" {
		c.Listen = listen
	}
	c.UnknownUser = UnknownUserBackend
	if network, _ := Address(address).Split(); user == "" || network != "unix" || !password.IsEmpty() {
		c.Users = []User{{Name: user, Credential: Credential{Password: password}}}
	}
	c.AdminUsers = []string{user}
	c.Sequence.Servers = []SequenceServer{{
		Address:    Address(address),
		User:       user,
		Credential: Credential{Password: password},
		Database:   c.Sequence.Database,
	}}
	c.Shards = []Shard{{Name: BackendShard, Nodes: []Node{{Address: Address(address)}}}}
	c.DefaultShard = BackendShard
	return c
}
