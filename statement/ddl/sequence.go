package ddl

// Toggle is an option that is on or off.
type Toggle uint8

// The values of a Toggle.
const (
	NotSaid Toggle = iota
	No
	Yes
)

// Number is an option with a number: at most one of Given and Default is set.
type Number struct {
	Given   bool
	Default bool // NO MINVALUE, NO MAXVALUE, CACHE DEFAULT: the default
	Value   uint64
}

// Kind is the clause that says which keys are made of the numbers: BIT_REVERSED, ROTATE n DIGITS
// digits, SHARD BITS n, SNOWFLAKE with its options, FORMAT 'format' [WIDEN] [TIME ZONE 'zone']
// [RESET DAILY | MONTHLY | YEARLY], or UUID [VERSION n] [BINARY].
type Kind struct {
	Word      string // the first word, or "SHARD BITS"; "" without a clause
	N, Digits Number

	Format, Zone  []byte // decoded, in the client's character set
	Widen, Binary bool
	Reset         string // DAILY, MONTHLY or YEARLY; "" without

	SkipFrom, SkipTo Number // of SKIP RANGE, which may stand anywhere

	// The options of SNOWFLAKE; nil if absent.
	Epoch, Tick                       []byte
	TimeBits, WorkerBits, CounterBits Number
}

// Sequence is what a statement about sequences asks for. Its names are decoded, in the client's
// character set, and valid as long as the Reader's Memory.
type Sequence struct {
	// Names holds the one name of CREATE, ALTER, SHOW CREATE and REPAIR, and at least one for DROP
	// and CHECK; none for SHOW, and for FLUSH of all. Qualified names appear as "db.s"; Schemas
	// then has the length of "db", else 0.
	Names   [][]byte
	Schemas []int
	// IfExists is IF NOT EXISTS for CREATE, and IF EXISTS for ALTER and DROP.
	IfExists  bool
	OrReplace bool
	// Pattern is that of SHOW SEQUENCES LIKE; escaped wildcards are still escaped.
	HasPattern bool
	Pattern    []byte

	// The options of CREATE and ALTER.
	Increment, Min, Max, Start Number
	Cache                      Number // NOCACHE is 0
	Cover                      Number // OUTAGE_COVER, in seconds
	Cycle, JSONSafe, Order     Toggle
	Kind                       Kind // of CREATE alone
	HasComment                 bool
	Comment                    []byte
	TypeMax                    uint64 // the greatest number of AS type; 0 without
	// The owning column of OWNED BY. Without a table it is OWNED BY NONE; without a schema, a table
	// of any schema.
	HasOwner                             bool
	OwnerSchema, OwnerTable, OwnerColumn []byte
	// Restart is RESTART [WITH n] [FORCE] of ALTER.
	Restart     bool
	RestartWith Number
	Force       bool

	// Key is the key of SEQUENCE_DECODE. KeyText is set, and not nil, if it is a string.
	Key     uint64
	KeyText []byte

	// Unsupported names the first thing that MariaDB has and seqproxy does not ("TEMPORARY",
	// "INCREMENT with a negative number"), else "".
	Unsupported string
	// WayOut is the way out, or the reason, for what is Unsupported; "" if there is none.
	WayOut string
	// Twice names the first option that occurs twice.
	Twice string
	// Problem says what is wrong with the statement, in words that fit behind
	// "near"; else "". A statement with any of the three must not be executed.
	Problem string
}
