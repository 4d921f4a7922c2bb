package admin

import (
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/statement/ddl"
)

// Codes that go-mysql has no name for.
const (
	erUnknownSequence  = 4091 // MariaDB: ER_UNKNOWN_SEQUENCES
	erSequenceConflict = 4085 // MariaDB: ER_SEQUENCE_INVALID_DATA
)

// refused is the error for a statement that must not be executed.
func refused(asked *ddl.Sequence) error {
	switch {
	case asked.Problem != "":
		return &protocol.ServerError{
			Code: mysql.ER_PARSE_ERROR, State: "42000",
			Message: fmt.Sprintf("You have an error in your SQL syntax near '%s'", asked.Problem),
		}
	case asked.Unsupported != "":
		return notSupported(asked.Unsupported)
	case asked.Twice != "":
		return &protocol.ServerError{
			Code: mysql.ER_DUP_ARGUMENT, State: "HY000",
			Message: fmt.Sprintf("Option '%s' used twice in statement", asked.Twice),
		}
	case asked.OrReplace && asked.IfExists:
		return &protocol.ServerError{
			Code: mysql.ER_WRONG_USAGE, State: "HY000", Message: "Incorrect usage of OR REPLACE and IF NOT EXISTS",
		}
	}
	return nil
}

func notSupported(what string) error {
	return &protocol.ServerError{
		Code: mysql.ER_NOT_SUPPORTED_YET, State: "42000",
		Message: fmt.Sprintf("seqproxy: %s is not supported for sequences", what),
	}
}

// conflicting is the error for a 0 where none can be.
func conflicting(name string) error {
	return &protocol.ServerError{
		Code: erSequenceConflict, State: "HY000", Message: fmt.Sprintf("seqproxy: conflicting values: sequence '%s': an option is 0 or beyond its type", name),
	}
}

// denied is the error for a sequence that the user may not use.
func denied(name []byte) error {
	return &protocol.ServerError{
		Code: mysql.ER_SPECIFIC_ACCESS_DENIED_ERROR, State: "42000",
		Message: fmt.Sprintf("Access denied; you need the right to use the sequence '%s' for this operation", name),
	}
}
