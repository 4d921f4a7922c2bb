package statement

import "encoding/binary"

// keyword is a word that means something to the classifier. Zero is no keyword.
type keyword uint8

const (
	kwNone keyword = iota
	kwAggregate
	kwAlgorithm
	kwAll
	kwAlter
	kwAnalyze
	kwAnd
	kwAny
	kwAs
	kwBackup
	kwBegin
	kwBetween
	kwBinary
	kwBy
	kwCache
	kwCall
	kwCase
	kwChain
	kwCharacter
	kwCharset
	kwCheck
	kwChecksum
	kwCollate
	kwComment
	kwCommit
	kwConnection
	kwConnectionID
	kwCount
	kwCreate
	kwCurrent
	kwCycle
	kwData
	kwDatabase
	kwDate
	kwDeallocate
	kwDefault
	kwDefiner
	kwDelayed
	kwDelete
	kwDesc
	kwDescribe
	kwDiagnostics
	kwDistinct
	kwDistinctRow
	kwDiv
	kwDo
	kwDrop
	kwDual
	kwDumpfile
	kwDuplicate
	kwElse
	kwEnd
	kwEngine
	kwErrorCount
	kwErrors
	kwEscape
	kwEvent
	kwExcept
	kwExecute
	kwExists
	kwExplain
	kwExport
	kwFalse
	kwFetch
	kwFlush
	kwFor
	kwFoundRows
	kwFrom
	kwFunction
	kwGet
	kwGetLock
	kwGlobal
	kwGrant
	kwGroup
	kwHandler
	kwHard
	kwHaving
	kwHighPriority
	kwIdentity
	kwIf
	kwIgnore
	kwImmediate
	kwIn
	kwIncrement
	kwInformationSchema
	kwInsert
	kwInsertID
	kwIntersect
	kwInterval
	kwInto
	kwIs
	kwKill
	kwLastInsertID
	kwLastval
	kwLike
	kwLimit
	kwLoad
	kwLocal
	kwLock
	kwLowPriority
	kwMaxvalue
	kwMinimumValue
	kwMinvalue
	kwMod
	kwNames
	kwNext
	kwNextNotCachedValue
	kwNextval
	kwNo
	kwNoWriteToBinlog
	kwNocache
	kwNocycle
	kwNomaxvalue
	kwNominvalue
	kwNoorder
	kwNot
	kwNull
	kwOn
	kwOpen
	kwOptimize
	kwOr
	kwOrder
	kwOutfile
	kwOver
	kwPackage
	kwPassword
	kwPerformanceSchema
	kwPersist
	kwPersistOnly
	kwPrepare
	kwPrevious
	kwProcedure
	kwPseudoThreadID
	kwQuery
	kwRead
	kwRecursive
	kwRegexp
	kwRelease
	kwReleaseAllLocks
	kwReleaseLock
	kwRename
	kwRepair
	kwReplace
	kwRestart
	kwReturning
	kwRevoke
	kwRlike
	kwRole
	kwRollback
	kwRowCount
	kwSavepoint
	kwSchema
	kwSecurity
	kwSelect
	kwSeqproxy
	kwSequence
	kwSequences
	kwServiceGetReadLocks
	kwServiceGetWriteLocks
	kwServiceReleaseLocks
	kwSession
	kwSessionVariables
	kwSet
	kwSetval
	kwShow
	kwSoft
	kwSome
	kwSounds
	kwSQL
	kwSQLBigResult
	kwSQLBufferResult
	kwSQLCache
	kwSQLCalcFoundRows
	kwSQLNoCache
	kwSQLSmallResult
	kwStacked
	kwStart
	kwStatement
	kwStraightJoin
	kwSystemVariables
	kwTable
	kwTables
	kwTemporary
	kwThen
	kwTime
	kwTimestamp
	kwTo
	kwTransaction
	kwTrigger
	kwTrue
	kwTruncate
	kwUnion
	kwUnknown
	kwUnlock
	kwUpdate
	kwUse
	kwValue
	kwValues
	kwVariables
	kwView
	kwWarningCount
	kwWarnings
	kwWhen
	kwWhere
	kwWith
	kwWork
	kwXA
	kwXML
	kwXor
	numKeywords // how many there are
)

// keywordText holds the words in lower case. lookup compares folded bytes, see
// fold.
var keywordText = [numKeywords]string{
	kwAggregate: "aggregate", kwAlgorithm: "algorithm", kwAll: "all", kwAlter: "alter",
	kwAnalyze: "analyze", kwAnd: "and", kwAny: "any", kwAs: "as", kwBackup: "backup", kwBegin: "begin",
	kwBetween: "between", kwBinary: "binary", kwBy: "by", kwCache: "cache", kwCall: "call",
	kwCase: "case", kwChain: "chain", kwCharacter: "character", kwCharset: "charset", kwCheck: "check",
	kwChecksum: "checksum", kwCollate: "collate", kwComment: "comment", kwCommit: "commit",
	kwConnection: "connection", kwConnectionID: "connection_id", kwCount: "count", kwCreate: "create",
	kwCurrent: "current", kwCycle: "cycle", kwData: "data", kwDatabase: "database", kwDate: "date",
	kwDeallocate: "deallocate", kwDefault: "default", kwDefiner: "definer", kwDelayed: "delayed",
	kwDelete: "delete", kwDesc: "desc", kwDescribe: "describe", kwDiagnostics: "diagnostics",
	kwDistinct: "distinct", kwDistinctRow: "distinctrow", kwDiv: "div", kwDo: "do", kwDrop: "drop",
	kwDual: "dual", kwDumpfile: "dumpfile", kwDuplicate: "duplicate", kwElse: "else", kwEnd: "end",
	kwEngine: "engine", kwErrorCount: "error_count", kwErrors: "errors", kwEscape: "escape", kwEvent: "event",
	kwExcept: "except", kwExecute: "execute", kwExists: "exists", kwExplain: "explain", kwExport: "export",
	kwFalse: "false", kwFetch: "fetch", kwFlush: "flush", kwFor: "for",
	kwFoundRows: "found_rows", kwFrom: "from", kwFunction: "function", kwGet: "get", kwGetLock: "get_lock",
	kwGlobal: "global", kwGrant: "grant", kwGroup: "group", kwHandler: "handler", kwHard: "hard",
	kwHaving: "having", kwHighPriority: "high_priority", kwIdentity: "identity", kwIf: "if",
	kwIgnore: "ignore", kwImmediate: "immediate", kwIn: "in", kwIncrement: "increment",
	kwInformationSchema: "information_schema", kwInsert: "insert", kwInsertID: "insert_id",
	kwIntersect: "intersect", kwInterval: "interval", kwInto: "into", kwIs: "is",
	kwKill: "kill", kwLastInsertID: "last_insert_id", kwLastval: "lastval", kwLike: "like",
	kwLimit: "limit", kwLoad: "load", kwLocal: "local", kwLock: "lock", kwLowPriority: "low_priority",
	kwMaxvalue: "maxvalue", kwMinimumValue: "minimum_value", kwMinvalue: "minvalue", kwMod: "mod", kwNames: "names", kwNext: "next",
	kwNextNotCachedValue: "next_not_cached_value",
	kwNextval:            "nextval", kwNo: "no", kwNoWriteToBinlog: "no_write_to_binlog", kwNocache: "nocache",
	kwNocycle: "nocycle", kwNomaxvalue: "nomaxvalue", kwNominvalue: "nominvalue", kwNoorder: "noorder",
	kwNot: "not", kwNull: "null", kwOn: "on", kwOpen: "open", kwOptimize: "optimize", kwOr: "or",
	kwOrder: "order", kwOutfile: "outfile", kwOver: "over", kwPackage: "package",
	kwPassword: "password", kwPerformanceSchema: "performance_schema", kwPersist: "persist",
	kwPersistOnly: "persist_only", kwPrepare: "prepare", kwPrevious: "previous", kwProcedure: "procedure",
	kwPseudoThreadID: "pseudo_thread_id", kwQuery: "query", kwRead: "read",
	kwRecursive: "recursive", kwRegexp: "regexp", kwRelease: "release",
	kwReleaseAllLocks: "release_all_locks", kwReleaseLock: "release_lock", kwRename: "rename",
	kwRepair: "repair", kwReplace: "replace", kwRestart: "restart", kwReturning: "returning",
	kwRevoke: "revoke", kwRlike: "rlike", kwRole: "role", kwRollback: "rollback",
	kwRowCount: "row_count", kwSavepoint: "savepoint", kwSchema: "schema", kwSecurity: "security",
	kwSelect: "select", kwSeqproxy: "seqproxy", kwSequence: "sequence", kwSequences: "sequences",
	kwServiceGetReadLocks: "service_get_read_locks", kwServiceGetWriteLocks: "service_get_write_locks",
	kwServiceReleaseLocks: "service_release_locks", kwSession: "session",
	kwSessionVariables: "session_variables", kwSet: "set", kwSetval: "setval", kwShow: "show", kwSoft: "soft",
	kwSome: "some", kwSounds: "sounds", kwSQL: "sql", kwSQLBigResult: "sql_big_result",
	kwSQLBufferResult: "sql_buffer_result", kwSQLCache: "sql_cache",
	kwSQLCalcFoundRows: "sql_calc_found_rows", kwSQLNoCache: "sql_no_cache",
	kwSQLSmallResult: "sql_small_result", kwStacked: "stacked", kwStart: "start",
	kwStatement: "statement", kwStraightJoin: "straight_join", kwSystemVariables: "system_variables",
	kwTable: "table", kwTables: "tables", kwTemporary: "temporary", kwThen: "then", kwTime: "time",
	kwTimestamp: "timestamp", kwTo: "to", kwTransaction: "transaction", kwTrigger: "trigger", kwTrue: "true",
	kwTruncate: "truncate", kwUnion: "union", kwUnknown: "unknown", kwUnlock: "unlock",
	kwUpdate: "update", kwUse: "use", kwValue: "value", kwValues: "values",
	kwVariables: "variables", kwView: "view", kwWarningCount: "warning_count",
	kwWarnings: "warnings", kwWhen: "when", kwWhere: "where", kwWith: "with", kwWork: "work", kwXA: "xa",
	kwXML: "xml", kwXor: "xor",
}

const (
	minKeyword = 2
	maxKeyword = 24 // below 32, see keywordLengths
	// keywordSlots is large against the number of words, so that most words
	// that are no keyword meet an empty slot.
	keywordSlots = 1 << keywordBits
	keywordBits  = 11
)

// keywordTable is an open hash table, filled once at start and read-only then.
// keywordKeys are the keys of the words, see keyOf, and keywordFolded is keywordText
// folded as lookup folds its input. In keywordLengths, bit n of the element for two
// letters is set if a keyword of n letters begins with them: nearly all names fall through here.
var (
	keywordTable   [keywordSlots]keyword
	keywordLengths [32][32]uint32
	keywordKeys    [numKeywords]uint64
	keywordFolded  [numKeywords]string
)

func init() {
	for kw := kwNone + 1; kw < numKeywords; kw++ {
		text := []byte(keywordText[kw])
		key := keyOf(text)
		keywordKeys[kw] = key
		keywordLengths[text[0]&0x1f][text[1]&0x1f] |= 1 << len(text)
		h := keywordHash(key)
		for keywordTable[h] != kwNone {
			h = (h + 1) % keywordSlots
		}
		keywordTable[h] = kw
		for i := range text {
			text[i] = fold(text[i])
		}
		keywordFolded[kw] = string(text)
	}
}

// fold maps the letters of both cases to lower case, and '_' to 0x7f, which
// cannot stand in a word. Other bytes may collide, but none of those that stand
// in words folds to a letter or to 0x7f.
func fold(c byte) byte { return c | 0x20 }

// keyLetters is how many letters of a word are in its key: words of no more are the same
// if their keys are.
const keyLetters = 7

// keyOf makes one number of a word's first letters, folded, the first in the lowest byte,
// and of its length, in the highest.
func keyOf(word []byte) uint64 {
	letters := uint64(0)
	for i := min(len(word), keyLetters) - 1; i >= 0; i-- {
		letters = letters<<8 | uint64(fold(word[i]))
	}
	return letters | uint64(len(word))<<(8*keyLetters)
}

func keywordHash(key uint64) uint32 { return uint32(key * 0x9E3779B97F4A7C15 >> (64 - keywordBits)) }

// mayBeKeyword reports whether there is a keyword of n letters that begins with these two.
func mayBeKeyword(first, second byte, n int) bool {
	return keywordLengths[first&0x1f][second&0x1f]>>n&1 != 0
}

// lookup finds the keyword that word is, in any letter case.
func lookup(word []byte) keyword {
	if len(word) < minKeyword || !mayBeKeyword(word[0], word[1], len(word)) {
		return kwNone
	}
	return lookupAt(word, 0, len(word))
}

// lookupAt is lookup for src[start:end], for which mayBeKeyword is true.
func lookupAt(src []byte, start, end int) keyword {
	n := end - start
	var key uint64
	if start+8 <= len(src) { // keyOf, of all letters at once
		letters := binary.LittleEndian.Uint64(src[start:]) | 0x2020202020202020
		key = letters&(1<<(8*min(n, keyLetters)&63)-1) | uint64(n)<<(8*keyLetters)
	} else {
		key = keyOf(src[start:end])
	}
	for h := keywordHash(key); ; h = (h + 1) % keywordSlots {
		kw := keywordTable[h]
		if kw == kwNone || keywordKeys[kw] == key && (n <= keyLetters || equalFolded(src[start+keyLetters:end], keywordFolded[kw][keyLetters:])) {
			return kw
		}
	}
}

// equalFold reports whether word is folded, which is in lower case with 0x7f for each '_', in any
// letter case.
func equalFold(word []byte, folded string) bool {
	return len(word) == len(folded) && equalFolded(word, folded)
}

func equalFolded(word []byte, folded string) bool {
	for i := 0; i < len(folded) && i < len(word); i++ {
		if fold(word[i]) != folded[i] {
			return false
		}
	}
	return true
}
