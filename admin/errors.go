package admin

import (
	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/statement/ddl"
)

// Codes that go-mysql has no name for.
const (
	erUnknownSequence  = 4091 // MariaDB: ER_UNKNOWN_SEQUENCES
	erSequenceConflict = 4085 // MariaDB: ER_SEQUENCE_INVALID_DATA
)

// refused is the error for a statement that cannot be executed.
func refused(asked *ddl.Sequence) error {
	switch {
	case asked.Problem != "":
		return protocol.Errorf(mysql.ER_PARSE_ERROR, "42000", "You have an error in your SQL syntax near '%s'", asked.Problem)
	case asked.WayOut != "":
		return protocol.NotSupported("%s is not supported for sequences: %s", asked.Unsupported, asked.WayOut)
	case asked.Unsupported != "":
		return notSupported(asked.Unsupported)
	case asked.Twice != "":
		return protocol.Errorf(mysql.ER_DUP_ARGUMENT, "HY000", "Option '%s' used twice in statement", asked.Twice)
	case asked.OrReplace && asked.IfExists:
		return protocol.Errorf(mysql.ER_WRONG_USAGE, "HY000", "Incorrect usage of OR REPLACE and IF NOT EXISTS")
	}
	return nil
}

func notSupported(what string) error {
	return protocol.NotSupported("%s is not supported for sequences", what)
}

// conflicting is the error for an option of 0 where that is impossible.
func conflicting(name string) error {
	return protocol.Errorf(erSequenceConflict, "HY000", "seqproxy: conflicting values: sequence '%s': an option is 0 or beyond its type", name)
}

// denied is the error for a sequence that the user may not use.
func denied(name []byte) error {
	return protocol.Errorf(mysql.ER_SPECIFIC_ACCESS_DENIED_ERROR, "42000", "Access denied; you need the right to use the sequence '%s' for this operation", name)
}
