package session

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/login"
	"seqproxy/proxy/params"
	"seqproxy/sequence"
)

// Codes that go-mysql has no name for.
const (
	erUnknownSequence  = 4091 // MariaDB: ER_UNKNOWN_SEQUENCES
	erSequenceRunOut   = 4084 // MariaDB: ER_SEQUENCE_RUN_OUT
	erSequenceConflict = 4085 // MariaDB: ER_SEQUENCE_INVALID_DATA
	erConnectionKilled = 1927 // MariaDB: ER_CONNECTION_KILLED
)

// erShardLost is the code for a shard's server that cannot be reached or was lost: the server
// behind the proxy is gone, and this connection still answers.
const erShardLost = mysql.ER_CONNECT_TO_FOREIGN_DATA_SOURCE

// forClient turns an error into the one that the client gets, and finds in SHOW WARNINGS. It has no
// addresses, paths and settings of the sequence servers and the state file.
func forClient(err error) *protocol.ServerError {
	if text, ok := hidden(err); ok {
		return cut(protocol.Errorf(mysql.ER_UNKNOWN_ERROR, "HY000", "seqproxy: %s", text))
	}
	return inFull(err)
}

// hidden returns the text that forClient uses instead of the error's own. ok is false if it uses
// the error's own.
func hidden(err error) (text string, ok bool) {
	if errors.As(err, new(*protocol.ServerError)) || errors.As(err, new(*sequence.NameError)) || errors.Is(err, sequence.ErrClosed) ||
		errors.As(err, new(*sequence.KindError)) || errors.Is(err, sequence.ErrSeveral) || errors.Is(err, sequence.ErrBadOption) {
		return "", false
	}
	return sequence.Public(err)
}

// inFull is forClient for a user who may see everything.
func inFull(err error) *protocol.ServerError { return cut(asServerError(err)) }

// cut returns e with its message cut to the length that is sent.
func cut(e *protocol.ServerError) *protocol.ServerError {
	if len(e.Message) <= protocol.MaxErrorText {
		return e
	}
	return &protocol.ServerError{Code: e.Code, State: e.State, Message: strings.Clone(protocol.CutErrorText(e.Message))}
}

// asServerError is inFull with a message of any length.
func asServerError(err error) *protocol.ServerError {
	var refused *protocol.ServerError
	var name *sequence.NameError
	var kinds *sequence.KindError
	switch {
	case errors.As(err, &refused):
		return withState(refused)
	case errors.As(err, &name):
		return forName(name)
	case errors.Is(err, sequence.ErrClosed):
		return login.ErrShutdown
	case errors.As(err, &kinds):
		return protocol.NotSupported("%v", kinds)
	case errors.Is(err, sequence.ErrSeveral):
		return protocol.NotSupported("%v", err)
	case errors.Is(err, sequence.ErrConflict):
		return protocol.Errorf(erSequenceConflict, "HY000", "seqproxy: %v", err)
	case errors.Is(err, sequence.ErrBadOption):
		return protocol.Errorf(mysql.ER_WRONG_ARGUMENTS, "HY000", "seqproxy: %v", err)
	}
	var unreachable *backend.UnreachableError
	if errors.As(err, &unreachable) {
		return protocol.Errorf(erShardLost, "HY000", "seqproxy: %v", unreachable)
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return protocol.Errorf(mysql.ER_UNKNOWN_ERROR, "HY000", "seqproxy: timed out: %v", err)
	}
	return protocol.Errorf(mysql.ER_UNKNOWN_ERROR, "HY000", "seqproxy: %v", err)
}

// withState adds the SQLSTATE to a server's error that came without one, in place of a greeting.
// Clients show this one then.
func withState(e *protocol.ServerError) *protocol.ServerError {
	if len(e.State) == len("HY000") {
		return e
	}
	return protocol.Errorf(e.Code, "HY000", "%s", e.Message)
}

// forName words the fault of a sequence's name as MariaDB does.
func forName(e *sequence.NameError) *protocol.ServerError {
	switch {
	case errors.Is(e, sequence.ErrUnknown):
		if e.Deleted > 0 {
			return protocol.Errorf(erUnknownSequence, "42S02", "Unknown SEQUENCE: '%s'; %s", e.Name, e.Cure())
		}
		return protocol.Errorf(erUnknownSequence, "42S02", "Unknown SEQUENCE: '%s'", e.Name)
	case errors.Is(e, sequence.ErrExists):
		return protocol.Errorf(mysql.ER_TABLE_EXISTS_ERROR, "42S01", "Sequence '%s' already exists", e.Name)
	case errors.Is(e, sequence.ErrExhausted):
		return protocol.Errorf(erSequenceRunOut, "HY000", "Sequence '%s' has run out", e.Name)
	}
	return protocol.Errorf(mysql.ER_UNKNOWN_ERROR, "HY000", "seqproxy: %v", e)
}

func unknownCommand() error {
	return protocol.Errorf(mysql.ER_UNKNOWN_COM_ERROR, "08S01", "Unknown command")
}

// unknownStatement returns the error of the session's server. where is MariaDB's name of the
// command.
func unknownStatement(id uint32, where string, likeMariaDB bool) error {
	if !likeMariaDB {
		where = "mysql_stmt_precheck"
	}
	return protocol.Errorf(mysql.ER_UNKNOWN_STMT_HANDLER, "HY000", "Unknown prepared statement handler (%d) given to %s", id, where)
}

// malformed returns the error of the session's server.
func malformed(likeMariaDB bool) error {
	if likeMariaDB {
		return params.ErrMalformed
	}
	return protocol.Errorf(mysql.ER_MALFORMED_PACKET, "HY000", "Malformed communication packet.")
}

var (
	errOutOfOrder = protocol.Errorf(mysql.ER_NET_PACKETS_OUT_OF_ORDER, "08S01", "Got packets out of order")
	// errKeysOnly answers a statement that needs a server when there is none.
	errKeysOnly = protocol.NotSupported("only keys are served here, no shard is configured: " +
		"SELECT NEXTVAL('name'), SELECT LAST_INSERT_ID(), statements about sequences, and what drivers ask when they connect work; " +
		"for all else connect to the database server, or add it as a [[shard]] to the configuration")
)
