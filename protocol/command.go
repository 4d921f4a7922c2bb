package protocol

import "github.com/go-mysql-org/go-mysql/mysql"

// Command is the first byte of a client's packet in the command phase.
type Command byte

// The commands
// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_command_phase.html).
const (
	ComQuit           = Command(mysql.COM_QUIT)
	ComInitDB         = Command(mysql.COM_INIT_DB)
	ComQuery          = Command(mysql.COM_QUERY)
	ComFieldList      = Command(mysql.COM_FIELD_LIST)
	ComCreateDB       = Command(mysql.COM_CREATE_DB)
	ComDropDB         = Command(mysql.COM_DROP_DB)
	ComRefresh        = Command(mysql.COM_REFRESH)
	ComShutdown       = Command(mysql.COM_SHUTDOWN)
	ComStatistics     = Command(mysql.COM_STATISTICS)
	ComProcessInfo    = Command(mysql.COM_PROCESS_INFO)
	ComProcessKill    = Command(mysql.COM_PROCESS_KILL)
	ComDebug          = Command(mysql.COM_DEBUG)
	ComPing           = Command(mysql.COM_PING)
	ComChangeUser     = Command(mysql.COM_CHANGE_USER)
	ComBinlogDump     = Command(mysql.COM_BINLOG_DUMP)
	ComTableDump      = Command(mysql.COM_TABLE_DUMP)
	ComRegisterSlave  = Command(mysql.COM_REGISTER_SLAVE)
	ComStmtPrepare    = Command(mysql.COM_STMT_PREPARE)
	ComStmtExecute    = Command(mysql.COM_STMT_EXECUTE)
	ComStmtLongData   = Command(mysql.COM_STMT_SEND_LONG_DATA)
	ComStmtClose      = Command(mysql.COM_STMT_CLOSE)
	ComStmtReset      = Command(mysql.COM_STMT_RESET)
	ComSetOption      = Command(mysql.COM_SET_OPTION)
	ComStmtFetch      = Command(mysql.COM_STMT_FETCH)
	ComBinlogDumpGTID = Command(mysql.COM_BINLOG_DUMP_GTID)
	ComResetConn      = Command(mysql.COM_RESET_CONNECTION)
	// ComStmtBulkExecute is MariaDB's, with BulkOperations only
	// (https://mariadb.com/kb/en/com_stmt_bulk_execute/).
	ComStmtBulkExecute = Command(0xfa)
)

// Shape is the form of an answer. The relay needs nothing else to find the answer's end.
type Shape uint8

const (
	// ShapeUnknown is the answer to a command whose answer cannot be framed.
	ShapeUnknown Shape = iota
	// ShapeNone is no answer.
	ShapeNone
	// ShapeOne is one packet: OK, ERR, EOF or a bare string.
	ShapeOne
	// ShapeResult is OK, ERR, LOCAL INFILE or a result set. Further results may follow.
	ShapeResult
	// ShapeCursor is the answer to an execution that asks for a cursor. It is a ShapeResult that
	// ends after the definitions if the server has opened a cursor.
	ShapeCursor
	// ShapeRows is the rows of a result set without its head (COM_STMT_FETCH).
	ShapeRows
	// ShapeFields is column definitions up to a terminator (COM_FIELD_LIST).
	ShapeFields
	// ShapePrepare is the answer to COM_STMT_PREPARE.
	ShapePrepare
)

// CursorReadOnly is the flag of COM_STMT_EXECUTE that asks for a cursor. Two other flags have
// names, but servers ignore them.
const CursorReadOnly = 1

// AnswerTo returns the shape of the answer to a command. payload has at least the command's first
// six bytes, if it has that many.
func AnswerTo(payload []byte) Shape {
	if len(payload) == 0 {
		return ShapeUnknown
	}
	c := Command(payload[0])
	if c == ComStmtExecute && len(payload) > 5 && payload[5]&CursorReadOnly != 0 {
		return ShapeCursor
	}
	return c.AnswerShape()
}

// AnswerShape returns the shape of the answer to c. It ignores the flags of an execution.
func (c Command) AnswerShape() Shape {
	switch c {
	case ComQuit, ComStmtClose, ComStmtLongData:
		return ShapeNone
	case ComInitDB, ComCreateDB, ComDropDB, ComRefresh, ComShutdown, ComStatistics, ComProcessKill,
		ComDebug, ComPing, ComStmtReset, ComSetOption, ComResetConn, ComRegisterSlave:
		return ShapeOne
	case ComQuery, ComStmtExecute, ComStmtBulkExecute, ComProcessInfo:
		return ShapeResult
	case ComStmtFetch:
		return ShapeRows
	case ComFieldList:
		return ShapeFields
	case ComStmtPrepare:
		return ShapePrepare
	}
	return ShapeUnknown
}
