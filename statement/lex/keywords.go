package lex

import "encoding/binary"

// Keyword is a word that matters to this package's users. Zero is no keyword.
type Keyword uint8

// The keywords.
const (
	KwNone Keyword = iota
	KwAggregate
	KwAlgorithm
	KwAll
	KwAlter
	KwAnalyze
	KwAnd
	KwAny
	KwAs
	KwBackup
	KwBegin
	KwBetween
	KwBinary
	KwBy
	KwCache
	KwCall
	KwCase
	KwChain
	KwCharacter
	KwCharset
	KwCheck
	KwChecksum
	KwCollate
	KwComment
	KwCommit
	KwConnection
	KwConnectionID
	KwCount
	KwCreate
	KwCurrent
	KwCycle
	KwData
	KwDatabase
	KwDate
	KwDeallocate
	KwDefault
	KwDefiner
	KwDelayed
	KwDelete
	KwDesc
	KwDescribe
	KwDiagnostics
	KwDistinct
	KwDistinctRow
	KwDiv
	KwDo
	KwDrop
	KwDual
	KwDumpfile
	KwDuplicate
	KwElse
	KwEnd
	KwEngine
	KwErrorCount
	KwErrors
	KwEscape
	KwEvent
	KwExcept
	KwExecute
	KwExists
	KwExplain
	KwExport
	KwFalse
	KwFetch
	KwFlush
	KwFor
	KwFoundRows
	KwFrom
	KwFunction
	KwGet
	KwGetLock
	KwGlobal
	KwGrant
	KwGroup
	KwHandler
	KwHard
	KwHaving
	KwHighPriority
	KwIdentity
	KwIf
	KwIgnore
	KwImmediate
	KwIn
	KwIncrement
	KwInformationSchema
	KwInsert
	KwInsertID
	KwIntersect
	KwInterval
	KwInto
	KwIs
	KwKill
	KwLastInsertID
	KwLastval
	KwLike
	KwLimit
	KwLoad
	KwLocal
	KwLock
	KwLowPriority
	KwMaxvalue
	KwMinimumValue
	KwMinvalue
	KwMod
	KwNames
	KwNext
	KwNextNotCachedValue
	KwNextval
	KwNo
	KwNoWriteToBinlog
	KwNocache
	KwNocycle
	KwNomaxvalue
	KwNominvalue
	KwNoorder
	KwNot
	KwNull
	KwOn
	KwOpen
	KwOptimize
	KwOr
	KwOrder
	KwOutfile
	KwOver
	KwPackage
	KwPassword
	KwPerformanceSchema
	KwPersist
	KwPersistOnly
	KwPrepare
	KwPrevious
	KwProcedure
	KwPseudoThreadID
	KwQuery
	KwRead
	KwRecursive
	KwRegexp
	KwRelease
	KwReleaseAllLocks
	KwReleaseLock
	KwRename
	KwRepair
	KwReplace
	KwRestart
	KwReturning
	KwRevoke
	KwRlike
	KwRole
	KwRollback
	KwRowCount
	KwSavepoint
	KwSchema
	KwSecurity
	KwSelect
	KwSeqproxy
	KwSequence
	KwSequences
	KwServiceGetReadLocks
	KwServiceGetWriteLocks
	KwServiceReleaseLocks
	KwSession
	KwSessionVariables
	KwSet
	KwSetval
	KwShow
	KwSoft
	KwSome
	KwSounds
	KwSQL
	KwSQLBigResult
	KwSQLBufferResult
	KwSQLCache
	KwSQLCalcFoundRows
	KwSQLNoCache
	KwSQLSmallResult
	KwStacked
	KwStart
	KwStatement
	KwStraightJoin
	KwSystemVariables
	KwTable
	KwTables
	KwTemporary
	KwThen
	KwTime
	KwTimestamp
	KwTo
	KwTransaction
	KwTrigger
	KwTrue
	KwTruncate
	KwUnion
	KwUnknown
	KwUnlock
	KwUpdate
	KwUse
	KwValue
	KwValues
	KwVariables
	KwView
	KwWarningCount
	KwWarnings
	KwWhen
	KwWhere
	KwWith
	KwWork
	KwXA
	KwXML
	KwXor
	numKeywords // number of keywords
)

// keywordText has the keywords in lower case. Lookup compares folded bytes, see fold.
var keywordText = [numKeywords]string{
	KwAggregate: "aggregate", KwAlgorithm: "algorithm", KwAll: "all", KwAlter: "alter",
	KwAnalyze: "analyze", KwAnd: "and", KwAny: "any", KwAs: "as", KwBackup: "backup", KwBegin: "begin",
	KwBetween: "between", KwBinary: "binary", KwBy: "by", KwCache: "cache", KwCall: "call",
	KwCase: "case", KwChain: "chain", KwCharacter: "character", KwCharset: "charset", KwCheck: "check",
	KwChecksum: "checksum", KwCollate: "collate", KwComment: "comment", KwCommit: "commit",
	KwConnection: "connection", KwConnectionID: "connection_id", KwCount: "count", KwCreate: "create",
	KwCurrent: "current", KwCycle: "cycle", KwData: "data", KwDatabase: "database", KwDate: "date",
	KwDeallocate: "deallocate", KwDefault: "default", KwDefiner: "definer", KwDelayed: "delayed",
	KwDelete: "delete", KwDesc: "desc", KwDescribe: "describe", KwDiagnostics: "diagnostics",
	KwDistinct: "distinct", KwDistinctRow: "distinctrow", KwDiv: "div", KwDo: "do", KwDrop: "drop",
	KwDual: "dual", KwDumpfile: "dumpfile", KwDuplicate: "duplicate", KwElse: "else", KwEnd: "end",
	KwEngine: "engine", KwErrorCount: "error_count", KwErrors: "errors", KwEscape: "escape", KwEvent: "event",
	KwExcept: "except", KwExecute: "execute", KwExists: "exists", KwExplain: "explain", KwExport: "export",
	KwFalse: "false", KwFetch: "fetch", KwFlush: "flush", KwFor: "for",
	KwFoundRows: "found_rows", KwFrom: "from", KwFunction: "function", KwGet: "get", KwGetLock: "get_lock",
	KwGlobal: "global", KwGrant: "grant", KwGroup: "group", KwHandler: "handler", KwHard: "hard",
	KwHaving: "having", KwHighPriority: "high_priority", KwIdentity: "identity", KwIf: "if",
	KwIgnore: "ignore", KwImmediate: "immediate", KwIn: "in", KwIncrement: "increment",
	KwInformationSchema: "information_schema", KwInsert: "insert", KwInsertID: "insert_id",
	KwIntersect: "intersect", KwInterval: "interval", KwInto: "into", KwIs: "is",
	KwKill: "kill", KwLastInsertID: "last_insert_id", KwLastval: "lastval", KwLike: "like",
	KwLimit: "limit", KwLoad: "load", KwLocal: "local", KwLock: "lock", KwLowPriority: "low_priority",
	KwMaxvalue: "maxvalue", KwMinimumValue: "minimum_value", KwMinvalue: "minvalue", KwMod: "mod", KwNames: "names", KwNext: "next",
	KwNextNotCachedValue: "next_not_cached_value",
	KwNextval:            "nextval", KwNo: "no", KwNoWriteToBinlog: "no_write_to_binlog", KwNocache: "nocache",
	KwNocycle: "nocycle", KwNomaxvalue: "nomaxvalue", KwNominvalue: "nominvalue", KwNoorder: "noorder",
	KwNot: "not", KwNull: "null", KwOn: "on", KwOpen: "open", KwOptimize: "optimize", KwOr: "or",
	KwOrder: "order", KwOutfile: "outfile", KwOver: "over", KwPackage: "package",
	KwPassword: "password", KwPerformanceSchema: "performance_schema", KwPersist: "persist",
	KwPersistOnly: "persist_only", KwPrepare: "prepare", KwPrevious: "previous", KwProcedure: "procedure",
	KwPseudoThreadID: "pseudo_thread_id", KwQuery: "query", KwRead: "read",
	KwRecursive: "recursive", KwRegexp: "regexp", KwRelease: "release",
	KwReleaseAllLocks: "release_all_locks", KwReleaseLock: "release_lock", KwRename: "rename",
	KwRepair: "repair", KwReplace: "replace", KwRestart: "restart", KwReturning: "returning",
	KwRevoke: "revoke", KwRlike: "rlike", KwRole: "role", KwRollback: "rollback",
	KwRowCount: "row_count", KwSavepoint: "savepoint", KwSchema: "schema", KwSecurity: "security",
	KwSelect: "select", KwSeqproxy: "seqproxy", KwSequence: "sequence", KwSequences: "sequences",
	KwServiceGetReadLocks: "service_get_read_locks", KwServiceGetWriteLocks: "service_get_write_locks",
	KwServiceReleaseLocks: "service_release_locks", KwSession: "session",
	KwSessionVariables: "session_variables", KwSet: "set", KwSetval: "setval", KwShow: "show", KwSoft: "soft",
	KwSome: "some", KwSounds: "sounds", KwSQL: "sql", KwSQLBigResult: "sql_big_result",
	KwSQLBufferResult: "sql_buffer_result", KwSQLCache: "sql_cache",
	KwSQLCalcFoundRows: "sql_calc_found_rows", KwSQLNoCache: "sql_no_cache",
	KwSQLSmallResult: "sql_small_result", KwStacked: "stacked", KwStart: "start",
	KwStatement: "statement", KwStraightJoin: "straight_join", KwSystemVariables: "system_variables",
	KwTable: "table", KwTables: "tables", KwTemporary: "temporary", KwThen: "then", KwTime: "time",
	KwTimestamp: "timestamp", KwTo: "to", KwTransaction: "transaction", KwTrigger: "trigger", KwTrue: "true",
	KwTruncate: "truncate", KwUnion: "union", KwUnknown: "unknown", KwUnlock: "unlock",
	KwUpdate: "update", KwUse: "use", KwValue: "value", KwValues: "values",
	KwVariables: "variables", KwView: "view", KwWarningCount: "warning_count",
	KwWarnings: "warnings", KwWhen: "when", KwWhere: "where", KwWith: "with", KwWork: "work", KwXA: "xa",
	KwXML: "xml", KwXor: "xor",
}

const (
	minKeyword = 2
	// keywordSlots is many times the number of keywords, so that most other words meet an empty
	// slot.
	keywordSlots = 1 << keywordBits
	keywordBits  = 11
)

// keywordTable is an open hash table, filled at the start and then read-only. keywordKeys has the
// keywords' keys, see keyOf. keywordFolded is keywordText, folded as Lookup folds its input.
// keywordLengths has an element for each pair of first letters: bit n is set if there is such a
// keyword of n letters. Nearly all names end there.
var (
	keywordTable   [keywordSlots]Keyword
	keywordLengths [32][32]uint32
	keywordKeys    [numKeywords]uint64
	keywordFolded  [numKeywords]string
)

func init() {
	for kw := KwNone + 1; kw < numKeywords; kw++ {
		text := []byte(keywordText[kw])
		key := keyOf(text)
		keywordKeys[kw] = key
		keywordLengths[text[0]&0x1f][text[1]&0x1f] |= 1 << len(text)
		h := keywordHash(key)
		for keywordTable[h] != KwNone {
			h = (h + 1) % keywordSlots
		}
		keywordTable[h] = kw
		for i := range text {
			text[i] = fold(text[i])
		}
		keywordFolded[kw] = string(text)
	}
}

// String returns the keyword in lower case.
func (kw Keyword) String() string { return keywordText[kw] }

// fold maps letters to lower case, and '_' to 0x7f, which cannot occur in a word. Other bytes may
// collide, but no other byte of a word folds to a letter or to 0x7f.
func fold(c byte) byte { return c | 0x20 }

// keyLetters is the number of letters in a key. Words of at most that length are equal if their
// keys are.
const keyLetters = 7

// keyOf makes a number of a word's first letters and its length. The folded first letter is the
// lowest byte, and the length is the highest.
func keyOf(word []byte) uint64 {
	letters := uint64(0)
	for i := min(len(word), keyLetters) - 1; i >= 0; i-- {
		letters = letters<<8 | uint64(fold(word[i]))
	}
	return letters | uint64(len(word))<<(8*keyLetters)
}

func keywordHash(key uint64) uint32 { return uint32(key * 0x9E3779B97F4A7C15 >> (64 - keywordBits)) }

// mayBeKeyword reports whether a keyword of n letters begins with these two.
func mayBeKeyword(first, second byte, n int) bool {
	return keywordLengths[first&0x1f][second&0x1f]>>n&1 != 0
}

// Lookup returns the keyword for word, in any letter case.
func Lookup(word []byte) Keyword {
	if len(word) < minKeyword || !mayBeKeyword(word[0], word[1], len(word)) {
		return KwNone
	}
	return lookupAt(word, 0, len(word))
}

// lookupAt is Lookup for src[start:end]. It requires mayBeKeyword.
func lookupAt(src []byte, start, end int) Keyword {
	n := end - start
	var key uint64
	if start+8 <= len(src) { // keyOf for all letters at once
		letters := binary.LittleEndian.Uint64(src[start:]) | 0x2020202020202020
		key = letters&(1<<(8*min(n, keyLetters)&63)-1) | uint64(n)<<(8*keyLetters)
	} else {
		key = keyOf(src[start:end])
	}
	for h := keywordHash(key); ; h = (h + 1) % keywordSlots {
		kw := keywordTable[h]
		if kw == KwNone || keywordKeys[kw] == key && (n <= keyLetters || equalFolded(src[start+keyLetters:end], keywordFolded[kw][keyLetters:])) {
			return kw
		}
	}
}
