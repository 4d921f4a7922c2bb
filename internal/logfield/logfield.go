// Package logfield has the names of fields in log lines, so that a field with one meaning has the
// same name in all lines. Fields that only one part of the proxy uses are in that part.
// docs/log-events.md lists all of them.
//
// Start at [Err] and the functions above it: each makes a field, by one of the names.
package logfield

import (
	"fmt"
	"math"
	"net"
	"time"

	"go.uber.org/zap"
)

// Fields of every line.
const (
	NameTime   = "ts"
	NameLevel  = "level"
	NameLogger = "logger"
	NameEvent  = "event"
)

// Fields of several parts.
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

	// NameStatement is the text of a statement after redact.Append, without anything that may be a
	// secret.
	NameStatement = "statement"
)

// EventAudit is a change by an admin, or an attempt. If NameOutcome is OutcomeDone or missing, the
// line is never left out.
const (
	EventAudit  = "audit"
	NameOutcome = "outcome"
	OutcomeDone = "done"
)

// Conn is a client's connection id.
func Conn(id uint32) zap.Field { return zap.Uint32(NameConn, id) }

// User is the name of an account. It is cut to the length of the longest account name.
func User(name string) zap.Field { return zap.String(NameUser, fmt.Sprintf("%.100s", name)) }

// Client is a client's address.
func Client(address net.Addr) zap.Field { return zap.Stringer(NameClient, address) }

// Shard is the name of a shard.
func Shard(name string) zap.Field { return zap.String(NameShard, name) }

// Node is the address of a server.
func Node(address string) zap.Field { return zap.String(NameNode, address) }

// Sequence is the name of a sequence for people, not that of the row that counts for it.
func Sequence(name string) zap.Field { return zap.String(NameSequence, name) }

// Kind is the kind of action, one of a few words.
func Kind(kind string) zap.Field { return zap.String(NameKind, kind) }

// Code is the number of an error that was sent to a client.
func Code(code uint16) zap.Field { return zap.Uint16(NameCode, code) }

// SQLState is the SQLSTATE of that error.
func SQLState(state string) zap.Field { return zap.String(NameSQLState, state) }

// Duration is a duration in milliseconds with three decimals.
func Duration(d time.Duration) zap.Field {
	return zap.Float64(NameDuration, math.Round(d.Seconds()*1e6)/1e3)
}

// Bytes is the size of something.
func Bytes(n uint64) zap.Field { return zap.Uint64(NameBytes, n) }

// Pin is the reason why a session keeps its connection to a server.
func Pin(reason string) zap.Field { return zap.String(NamePin, reason) }

// Err is an error.
func Err(err error) zap.Field { return zap.NamedError(NameErr, err) }
