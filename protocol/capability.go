package protocol

import "github.com/go-mysql-org/go-mysql/mysql"

// Capability is a set of client/server capability flags. The lower 32 bits are those of
// https://dev.mysql.com/doc/dev/mysql-server/latest/group__group__cs__capabilities__flags.html,
// the upper ones are MariaDB's extended flags (https://mariadb.com/kb/en/connection/#capabilities),
// which stand in reserved bytes of the handshake and only where LongPassword is not set.
type Capability uint64

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

	// ExpiredPasswords: the client can live with a session that may do nothing but set
	// a new password.
	ExpiredPasswords = Capability(mysql.CLIENT_CAN_HANDLE_EXPIRED_PASSWORDS)
	// OptionalMetadata: the variable resultset_metadata may leave definitions out (MySQL).
	OptionalMetadata = Capability(mysql.CLIENT_OPTIONAL_RESULTSET_METADATA)
	// QueryAttributes: COM_QUERY and COM_STMT_EXECUTE have attributes with them (MySQL).
	QueryAttributes  = Capability(mysql.CLIENT_QUERY_ATTRIBUTES)
	VerifyServerCert = Capability(mysql.CLIENT_SSL_VERIFY_SERVER_CERT)
	RememberOptions  = Capability(mysql.CLIENT_REMEMBER_OPTIONS)
	// MultiFactor is agreed on with the server of a login that is checked there.
	MultiFactor = Capability(mysql.MULTI_FACTOR_AUTHENTICATION)
	// CompressZstd is Compress with zstd, the level of which the client says (MySQL).
	CompressZstd = Capability(mysql.CLIENT_ZSTD_COMPRESSION_ALGORITHM)
)

// MariaDB's extended flags.
const (
	// Progress: a statement that takes long sends reports before and in its answer.
	Progress Capability = 1 << (32 + iota)
	_                   // COM_MULTI, which no release has
	// BulkOperations: COM_STMT_BULK_EXECUTE.
	BulkOperations
	// ExtendedMetadata: definitions tell of types that have no number, such as JSON and UUID.
	ExtendedMetadata
	// CacheMetadata: an execution leaves out definitions that have not changed.
	CacheMetadata
	// BulkUnitResults: COM_STMT_BULK_EXECUTE tells of each of its rows if it is asked to.
	BulkUnitResults
)

// TellsMetadata is the flags with which a result set's head says whether definitions
// follow. No server has both.
const TellsMetadata = OptionalMetadata | CacheMetadata

// Extended is all bits of MariaDB's extended flags.
const Extended Capability = 0xffffffff << 32

// Relayable is every flag that may be agreed on with a client when the backends
// offer it too: those whose bytes the relay can frame and pass on as they are.
const Relayable = LongPassword | FoundRows | LongFlag | ConnectWithDB | NoSchema | ODBC |
	LocalFiles | IgnoreSpace | Protocol41 | Interactive | IgnoreSigpipe | Transactions | Reserved |
	SecureConnection | MultiStatements | MultiResults | PSMultiResults | PluginAuth | ConnectAttrs |
	PluginAuthLenEnc | ExpiredPasswords | SessionTrack | DeprecateEOF | VerifyServerCert | RememberOptions |
	OptionalMetadata | QueryAttributes |
	Progress | BulkOperations | ExtendedMetadata | CacheMetadata | BulkUnitResults

// Common is the part of Relayable, and of Compressing, that every server since MySQL 5.7 and
// MariaDB 10.2 has, which clients are offered while no server can be asked.
const Common = LongPassword | FoundRows | LongFlag | ConnectWithDB | NoSchema | ODBC |
	LocalFiles | IgnoreSpace | Protocol41 | Interactive | IgnoreSigpipe | Transactions | Reserved |
	SecureConnection | MultiStatements | MultiResults | PSMultiResults | PluginAuth | ConnectAttrs |
	PluginAuthLenEnc | ExpiredPasswords | SessionTrack | DeprecateEOF | Compress

// Compressing is the flags for a compressed stream, a matter of each side alone. A
// Conn compresses towards a client, never towards a backend.
const Compressing = Compress | CompressZstd

// PerLogin is the part of Relayable that each side agrees on for its own login;
// the rest changes what later bytes mean and must be equal on both sides.
const PerLogin = ConnectWithDB | PluginAuth | ConnectAttrs | PluginAuthLenEnc | SecureConnection | SSL | MultiFactor

// Has says whether all flags of want are in c.
func (c Capability) Has(want Capability) bool { return c&want == want }

// HasAny says whether a flag of want is in c.
func (c Capability) HasAny(want Capability) bool { return c&want != 0 }

// extendedWord is what stands in the reserved bytes of a handshake for MariaDB's
// extended flags: MySQL wants zeros there.
func (c Capability) extendedWord() uint32 {
	if c.Has(LongPassword) {
		return 0
	}
	return uint32(c >> 32)
}

// withExtended returns c, the flags of a handshake, with what its reserved bytes hold.
func (c Capability) withExtended(word uint32) Capability {
	if c.Has(LongPassword) {
		return c
	}
	return c | Capability(word)<<32
}

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
	OutParams          = Status(mysql.SERVER_PS_OUT_PARAMS)
	InReadOnlyTrans    = Status(0x2000)
	ANSIQuotes         = Status(0x8000)
)

// Has says whether all bits of want are in s.
func (s Status) Has(want Status) bool { return s&want == want }
