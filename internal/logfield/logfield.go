// Package logfield holds the names of what log lines say in fields, so that a field
// with one meaning has one name in all of them. Fields that only one part of the proxy
// has are named there; docs/log-events.md lists all.
package logfield

import (
	"fmt"
	"math"
	"net"
	"strings"
	"time"

	"go.uber.org/zap"
)

// What every line has.
const (
	NameTime   = "ts"
	NameLevel  = "level"
	NameLogger = "logger"
	NameEvent  = "event"
)

// What lines of several parts have.
const (
	NameConn     = "conn"
	NameUser     = "user"
	NameClient   = "client"
	NameShard    = "shard"
	NameNode     = "node"
	NameSequence = "sequence"
	NameKind     = "kind"
	NameCode     = "code"
	NameSQLState = "sqlstate"
	NameDuration = "duration_ms"
	NameBytes    = "bytes"
	NamePin      = "pin"
	NameErr      = "err"

	// NameStatement is the text of a statement without anything that may be a secret:
	// what statement.Redact leaves of it.
	NameStatement = "statement"
)

// EventAudit is the event of a change by an admin, or of an attempt. Its lines are never left
// out if their field NameOutcome says OutcomeDone.
const (
	EventAudit  = "audit"
	NameOutcome = "outcome"
	OutcomeDone = "done"
)

// Conn is a client's connection id.
func Conn(id uint32) zap.Field { return zap.Uint32(NameConn, id) }

// User is the name of an account. No more of it is logged than the longest account name has.
func User(name string) zap.Field { return zap.String(NameUser, fmt.Sprintf("%.100s", name)) }

// Client is a client's address.
func Client(address net.Addr) zap.Field { return zap.Stringer(NameClient, address) }

// Shard is the name of a shard.
func Shard(name string) zap.Field { return zap.String(NameShard, name) }

// Node is the address of a server.
func Node(address string) zap.Field { return zap.String(NameNode, address) }

// Sequence is the name of a sequence. Its counter's row may have a name with more behind it
// (sequence.counterSuffix).
func Sequence(name string) zap.Field {
	return zap.String(NameSequence, strings.TrimSuffix(name, "#counter"))
}

// Kind is what was done, one of a few words.
func Kind(kind string) zap.Field { return zap.String(NameKind, kind) }

// Code is the number of an error that a client was told.
func Code(code uint16) zap.Field { return zap.Uint16(NameCode, code) }

// SQLState is its SQLSTATE.
func SQLState(state string) zap.Field { return zap.String(NameSQLState, state) }

// Duration is how long something took, in milliseconds with three digits behind the point.
func Duration(d time.Duration) zap.Field {
	return zap.Float64(NameDuration, math.Round(d.Seconds()*1e6)/1e3)
}

// Bytes is the size of something.
func Bytes(n uint64) zap.Field { return zap.Uint64(NameBytes, n) }

// Pin is why a session keeps its connection to a server.
func Pin(reason string) zap.Field { return zap.String(NamePin, reason) }

// Err is what went wrong.
func Err(err error) zap.Field { return zap.NamedError(NameErr, err) }
