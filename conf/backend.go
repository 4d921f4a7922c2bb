package conf

// BackendShard is the name of the one shard that [ForBackend] makes.
const BackendShard = "default"

// ForBackend is the configuration of a proxy in front of one server, without a
// file: everything goes to the server at address ("127.0.0.1:3306" or
// "unix:/path"), clients log in with the server's accounts, and user may change
// sequences and is what the proxy reserves numbers as. listen may be empty for the
// default. It is complete, but not validated.
//
// The proxy knows user, so that clients can log in as it, for keys, while the server is
// away. Not so without a password over a Unix socket, where the server may trust who
// runs the proxy: it then checks user as it does all other accounts.
//
// The sequence table stands on the same server, in the schema
// Sequence.Database, "seqproxy", and not in one of the application's: the account
// must be allowed to create that schema, or somebody creates it once and grants
// SELECT, INSERT, UPDATE, DELETE and CREATE on it. A table `sequence` that an
// application has already is never touched by accident. Whoever wants that
// one sets Sequence.Database and Sequence.Servers[0].Database to its schema.
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
