package store

import (
	"fmt"

	"seqproxy/sequence/define"
	"seqproxy/sequence/link"
)

// Grants returns the statement that gives an account the rights that it needs on the schema of the
// tables. account is written as GRANT takes it.
func Grants(schema, account string) string { return grantText(rights+", CREATE", schema, account) }

// GrantsOnTables is Grants for an account that does not create the tables.
func GrantsOnTables(schema, account string) string { return grantText(rights, schema, account) }

const rights = "SELECT, INSERT, UPDATE, DELETE"

func grantText(rights, schema, account string) string {
	return fmt.Sprintf("GRANT %s ON %s.* TO %s", rights, define.Quote(schema), account)
}

// Grants is the statement in a message that does not name the account.
func (s *Schema) Grants() string { return Grants(s.Config.Database, "the user") }

// WithGrants adds to the server's error about a missing right what to grant. It returns other
// errors unchanged.
func WithGrants(err error, schema string) error {
	if !link.IsDenied(err) {
		return err
	}
	return fmt.Errorf("%w; to mend it: %s", err, Grants(schema, "the user"))
}
