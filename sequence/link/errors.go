package link

import (
	"database/sql/driver"
	"errors"
	"slices"
	"strings"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-sql-driver/mysql"
)

// Codes of errors that the constants' package lacks.
const (
	CannotConvert        = 3854 // a string, into another character set
	CannotConvertMariaDB = 1977
	CounterAtEndMariaDB  = 167 // AUTO_INCREMENT
	rolledBackAtCommit   = 3101
)

// lockDeadlock is the storage engine's error in ER_ERROR_DURING_COMMIT where a replication group
// has applied another member's commit meanwhile.
const lockDeadlock = " 149 "

// IsMomentary reports whether a concurrent change by another may explain a finding.
func IsMomentary(err error) bool {
	var unfit *UnfitError
	return errors.As(err, &unfit) && unfit.Momentary
}

// IsUnknownOutcome reports whether a failed statement may have run: it was sent, and no answer
// came. An error from the server means that it did not run. driver.ErrBadConn means that it was
// never sent, or that a read-only server refused it.
func IsUnknownOutcome(err error) bool {
	var said *mysql.MySQLError
	return !errors.As(err, &said) && !errors.Is(err, driver.ErrBadConn)
}

func HasCode(err error, codes ...uint16) bool {
	var said *mysql.MySQLError
	return errors.As(err, &said) && slices.Contains(codes, said.Number)
}

// IsConflict: a deadlock, a lock wait timeout, MariaDB's "record has changed since last read", or a
// replication group's answer to a commit that came second.
func IsConflict(err error) bool {
	var said *mysql.MySQLError
	if errors.As(err, &said) && said.Number == gomysql.ER_ERROR_DURING_COMMIT {
		return strings.Contains(said.Message, lockDeadlock)
	}
	return HasCode(err, gomysql.ER_LOCK_DEADLOCK, gomysql.ER_LOCK_WAIT_TIMEOUT, gomysql.ER_CHECKREAD, rolledBackAtCommit)
}

// IsOutOfRange: the number does not fit the column, or 64 bits.
func IsOutOfRange(err error) bool {
	return HasCode(err, gomysql.ER_WARN_DATA_OUT_OF_RANGE, gomysql.ER_DATA_OUT_OF_RANGE)
}

// IsNoSuchText: a name that the column's charset cannot hold, or that is no valid text. It names no
// row.
func IsNoSuchText(err error) bool {
	return HasCode(err, gomysql.ER_INVALID_CHARACTER_STRING, gomysql.ER_CANT_AGGREGATE_2COLLATIONS, CannotConvert, CannotConvertMariaDB)
}

// IsDenied reports whether the account of a sequence server lacks a right. The error names it in
// the server's words.
func IsDenied(err error) bool {
	return HasCode(err, gomysql.ER_DBACCESS_DENIED_ERROR, gomysql.ER_TABLEACCESS_DENIED_ERROR,
		gomysql.ER_COLUMNACCESS_DENIED_ERROR, gomysql.ER_SPECIFIC_ACCESS_DENIED_ERROR)
}

// IsRefused reports whether the account may not use or make a table, or a foreign table has its
// name.
func IsRefused(err error) bool {
	return HasCode(err, gomysql.ER_NO_SUCH_TABLE, gomysql.ER_BAD_FIELD_ERROR, gomysql.ER_TABLEACCESS_DENIED_ERROR, gomysql.ER_COLUMNACCESS_DENIED_ERROR, gomysql.ER_DBACCESS_DENIED_ERROR)
}
