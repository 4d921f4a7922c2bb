package sequence

import (
	"database/sql/driver"
	"errors"
	"slices"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-sql-driver/mysql"
)

// Codes that the constants' package lacks.
const (
	cannotConvert        = 3854 // a string, into another character set
	cannotConvertMariaDB = 1977
	counterAtEndMariaDB  = 167 // AUTO_INCREMENT
	rolledBackAtCommit   = 3101
)

func isMomentary(err error) bool {
	var unfit *UnfitError
	return errors.As(err, &unfit) && unfit.momentary
}

// isUnknownOutcome reports whether a statement may have run although it failed: it was sent and no
// answer came. An error that the server sent means that it did not run, and driver.ErrBadConn that
// it was never sent, or that a read-only server refused it.
func isUnknownOutcome(err error) bool {
	var said *mysql.MySQLError
	return !errors.As(err, &said) && !errors.Is(err, driver.ErrBadConn)
}

func hasCode(err error, codes ...uint16) bool {
	var said *mysql.MySQLError
	return errors.As(err, &said) && slices.Contains(codes, said.Number)
}

// isConflict: deadlock, lock wait timeout, MariaDB's "record has changed since last read", and what
// a replication group answers where a commit on another member was first.
func isConflict(err error) bool {
	return hasCode(err, gomysql.ER_LOCK_DEADLOCK, gomysql.ER_LOCK_WAIT_TIMEOUT, gomysql.ER_CHECKREAD, rolledBackAtCommit)
}

// isOutOfRange: the number does not fit the column, or not 64 bits.
func isOutOfRange(err error) bool {
	return hasCode(err, gomysql.ER_WARN_DATA_OUT_OF_RANGE, gomysql.ER_DATA_OUT_OF_RANGE)
}

// isNoSuchText: a name that the column's charset cannot hold, or that is no valid text, names no
// row.
func isNoSuchText(err error) bool {
	return hasCode(err, gomysql.ER_INVALID_CHARACTER_STRING, gomysql.ER_CANT_AGGREGATE_2COLLATIONS, cannotConvert, cannotConvertMariaDB)
}

// IsDenied says that the account of a sequence server lacks a right. The error names it in the
// server's words.
func IsDenied(err error) bool {
	return hasCode(err, gomysql.ER_DBACCESS_DENIED_ERROR, gomysql.ER_TABLEACCESS_DENIED_ERROR,
		gomysql.ER_COLUMNACCESS_DENIED_ERROR, gomysql.ER_SPECIFIC_ACCESS_DENIED_ERROR)
}
