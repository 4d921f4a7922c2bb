package sequence

import "seqproxy/sequence/store"

// Schema are the statements that create the schema and all tables of a sequence server, for an
// account that may not create them itself.
func Schema(database, first string) []string { return store.Statements(database, first) }

// Grants is the statement that gives an account of a sequence server the rights that it needs on
// the schema of the tables. account is written as GRANT takes it.
func Grants(schema, account string) string { return store.Grants(schema, account) }

// GrantsOnTables is Grants for an account that does not create the tables.
func GrantsOnTables(schema, account string) string { return store.GrantsOnTables(schema, account) }
