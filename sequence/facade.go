package sequence

import "seqproxy/sequence/store"

// What the tables of a sequence server say; see package store.
type (
	// Proxy is one that may hold numbers in memory.
	Proxy = store.Proxy
	// RegisteredError: a sequence is not restarted, as other proxies may hold numbers of it.
	RegisteredError = store.RegisteredError
)

// ErrNoText is a name whose bytes are no text in the character set that they are in, or
// a text that UTF-8 has not.
var ErrNoText = store.ErrNoText

// Schema are the statements that create the schema and all tables of a sequence server, for an
// account that may not create them itself.
func Schema(database, first string) []string { return store.Statements(database, first) }

// Grants is the statement that gives an account of a sequence server the rights that it needs on
// the schema of the tables. account is written as GRANT takes it.
func Grants(schema, account string) string { return store.Grants(schema, account) }

// GrantsOnTables is Grants for an account that does not create the tables.
func GrantsOnTables(schema, account string) string { return store.GrantsOnTables(schema, account) }
