package protocol

import "github.com/go-mysql-org/go-mysql/mysql"

// Capability is a set of client/server capability flags, the lower 32 bits of
// the handshake (https://dev.mysql.com/doc/dev/mysql-server/latest/group__group__cs__capabilities__flags.html).
type Capability uint32

// The flags that this package or its callers look at.
const (
	LongPassword     = Capability(mysql.CLIENT_LONG_PASSWORD)
	FoundRows        = Capability(mysql.CLIENT_FOUND_ROWS)
	LongFlag         = Capability(mysql.CLIENT_LONG_FLAG)
	ConnectWithDB    = Capability(mysql.CLIENT_CONNECT_WITH_DB)
	NoSchema         = Capability(mysql.CLIENT_NO_SCHEMA)
	Compress         = Capability(mysql.CLIENT_COMPRESS)
	ODBC             = Capability(mysql.CLIENT_ODBC)
	LocalFiles       = Capability(mysql.CLIENT_LOCAL_FILES)
	IgnoreSpace      = Capability(mysql.CLIENT_IGNORE_SPACE)
	Protocol41       = Capability(mysql.CLIENT_PROTOCOL_41)
	Interactive      = Capability(mysql.CLIENT_INTERACTIVE)
	SSL              = Capability(mysql.CLIENT_SSL)
	IgnoreSigpipe    = Capability(mysql.CLIENT_IGNORE_SIGPIPE)
	Transactions     = Capability(mysql.CLIENT_TRANSACTIONS)
	Reserved         = Capability(mysql.CLIENT_RESERVED)
	SecureConnection = Capability(mysql.CLIENT_SECURE_CONNECTION)
	MultiStatements  = Capability(mysql.CLIENT_MULTI_STATEMENTS)
	MultiResults     = Capability(mysql.CLIENT_MULTI_RESULTS)
	PSMultiResults   = Capability(mysql.CLIENT_PS_MULTI_RESULTS)
	PluginAuth       = Capability(mysql.CLIENT_PLUGIN_AUTH)
	ConnectAttrs     = Capability(mysql.CLIENT_CONNECT_ATTRS)
	PluginAuthLenEnc = Capability(mysql.CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA)
	SessionTrack     = Capability(mysql.CLIENT_SESSION_TRACK)
	DeprecateEOF     = Capability(mysql.CLIENT_DEPRECATE_EOF)
)

// Relayable is every flag that may be agreed on with a client when the backends
// offer it too: those whose bytes the relay can frame and pass on as they are.
const Relayable = LongPassword | FoundRows | LongFlag | ConnectWithDB | NoSchema | ODBC |
	LocalFiles | IgnoreSpace | Protocol41 | Interactive | IgnoreSigpipe | Transactions | Reserved |
	SecureConnection | MultiStatements | MultiResults | PSMultiResults | PluginAuth | ConnectAttrs |
	PluginAuthLenEnc | SessionTrack | DeprecateEOF

// PerLogin is the part of Relayable that each side agrees on for its own login;
// the rest changes what later bytes mean and must be equal on both sides.
const PerLogin = ConnectWithDB | PluginAuth | ConnectAttrs | PluginAuthLenEnc | SecureConnection | SSL

// Has says whether all flags of want are in c.
func (c Capability) Has(want Capability) bool { return c&want == want }

// Status is the server status word of OK and EOF packets
// (https://dev.mysql.com/doc/dev/mysql-server/latest/mysql__com_8h.html, SERVER_STATUS_flags_enum).
type Status uint16

// The status bits that the proxy looks at.
const (
	InTransaction      = Status(mysql.SERVER_STATUS_IN_TRANS)
	Autocommit         = Status(mysql.SERVER_STATUS_AUTOCOMMIT)
	MoreResults        = Status(mysql.SERVER_MORE_RESULTS_EXISTS)
	CursorExists       = Status(mysql.SERVER_STATUS_CURSOR_EXISTS)
	LastRowSent        = Status(mysql.SERVER_STATUS_LAST_ROW_SEND)
	NoBackslashEscapes = Status(mysql.SERVER_STATUS_NO_BACKSLASH_ESCAPED)
	InReadOnlyTrans    = Status(0x2000)
	ANSIQuotes         = Status(0x8000)
)

// Has says whether all bits of want are in s.
func (s Status) Has(want Status) bool { return s&want == want }
