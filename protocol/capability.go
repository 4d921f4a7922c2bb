package protocol

import "github.com/go-mysql-org/go-mysql/mysql"

// Capability is a set of capability flags. The lower 32 bits are MySQL's
// (https://dev.mysql.com/doc/dev/mysql-server/latest/group__group__cs__capabilities__flags.html).
// The upper ones are MariaDB's extended flags (https://mariadb.com/kb/en/connection/#capabilities).
// They travel in reserved bytes of the handshake, and only without LongPassword.
type Capability uint64

// The flags that this package or its callers use.
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

	// ExpiredPasswords lets a client have a session that may only set a new password.
	ExpiredPasswords = Capability(mysql.CLIENT_CAN_HANDLE_EXPIRED_PASSWORDS)
	// OptionalMetadata lets resultset_metadata suppress column definitions (MySQL).
	OptionalMetadata = Capability(mysql.CLIENT_OPTIONAL_RESULTSET_METADATA)
	// QueryAttributes adds attributes to COM_QUERY and COM_STMT_EXECUTE (MySQL).
	QueryAttributes  = Capability(mysql.CLIENT_QUERY_ATTRIBUTES)
	VerifyServerCert = Capability(mysql.CLIENT_SSL_VERIFY_SERVER_CERT)
	RememberOptions  = Capability(mysql.CLIENT_REMEMBER_OPTIONS)
	// MultiFactor is agreed on only with the server of a relayed login.
	MultiFactor = Capability(mysql.MULTI_FACTOR_AUTHENTICATION)
	// CompressZstd is Compress with zstd, at a level that the client chooses (MySQL).
	CompressZstd = Capability(mysql.CLIENT_ZSTD_COMPRESSION_ALGORITHM)
)

// MariaDB's extended flags.
const (
	// Progress lets a long statement send progress reports before and within its answer.
	Progress Capability = 1 << (32 + iota)
	_                   // COM_MULTI, in no release
	// BulkOperations allows COM_STMT_BULK_EXECUTE.
	BulkOperations
	// ExtendedMetadata adds to definitions the types without a number, such as JSON and UUID.
	ExtendedMetadata
	// CacheMetadata lets an execution omit definitions that have not changed.
	CacheMetadata
	// BulkUnitResults lets COM_STMT_BULK_EXECUTE report on each row if the client asks for that.
	BulkUnitResults
)

// MetadataFlags are the flags with which the first packet of a result set says whether definitions
// follow. No server has both.
const MetadataFlags = OptionalMetadata | CacheMetadata

// Extended is the mask of MariaDB's extended flags.
const Extended Capability = 0xffffffff << 32

// Relayable are the flags that client and backends may agree on. The relay can frame the bytes of a
// connection with these flags, and passes them on unchanged.
const Relayable = LongPassword | FoundRows | LongFlag | ConnectWithDB | NoSchema | ODBC |
	LocalFiles | IgnoreSpace | Protocol41 | Interactive | IgnoreSigpipe | Transactions | Reserved |
	SecureConnection | MultiStatements | MultiResults | PSMultiResults | PluginAuth | ConnectAttrs |
	PluginAuthLenEnc | ExpiredPasswords | SessionTrack | DeprecateEOF | VerifyServerCert | RememberOptions |
	OptionalMetadata | QueryAttributes |
	Progress | BulkOperations | ExtendedMetadata | CacheMetadata | BulkUnitResults

// Common are the flags of Relayable and Compressing that every server since MySQL 5.7 and MariaDB
// 10.2 has. The greeting offers these while no server can be asked.
const Common = LongPassword | FoundRows | LongFlag | ConnectWithDB | NoSchema | ODBC |
	LocalFiles | IgnoreSpace | Protocol41 | Interactive | IgnoreSigpipe | Transactions | Reserved |
	SecureConnection | MultiStatements | MultiResults | PSMultiResults | PluginAuth | ConnectAttrs |
	PluginAuthLenEnc | ExpiredPasswords | SessionTrack | DeprecateEOF | Compress

// Compressing are the flags for a compressed stream. Each side decides for itself: a Conn
// compresses towards a client, never towards a backend.
const Compressing = Compress | CompressZstd

// PerLogin are the flags of Relayable that each side agrees on for its own login. All others change
// the meaning of later bytes and must be equal on both sides.
const PerLogin = ConnectWithDB | PluginAuth | ConnectAttrs | PluginAuthLenEnc | SecureConnection | SSL | MultiFactor

// Has reports whether c has all flags of want.
func (c Capability) Has(want Capability) bool { return c&want == want }

// HasAny reports whether c has a flag of want.
func (c Capability) HasAny(want Capability) bool { return c&want != 0 }

// extendedWord returns MariaDB's extended flags for the reserved bytes of a handshake. MySQL wants
// zeros there.
func (c Capability) extendedWord() uint32 {
	if c.Has(LongPassword) {
		return 0
	}
	return uint32(c >> 32)
}

// withExtended adds the contents of the reserved bytes to c, the flags of a handshake.
func (c Capability) withExtended(word uint32) Capability {
	if c.Has(LongPassword) {
		return c
	}
	return c | Capability(word)<<32
}
