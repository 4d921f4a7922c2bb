package state

import (
	"slices"
	"strconv"
	"strings"

	"seqproxy/statement/lex"
)

// LongestName bounds names and values where no server refuses long ones, in bytes: servers allow 64
// characters.
const LongestName = 256

// HereName returns the name of a system variable in State.here: the older one, which all servers
// had.
func HereName(name string) string {
	switch name {
	case "transaction_isolation":
		return "tx_isolation"
	case "transaction_read_only":
		return "tx_read_only"
	}
	return name
}

// otherName returns the other name of a variable, if it has one.
func otherName(name string) string { return strings.Replace(name, "tx_", "transaction_", 1) }

// SetHere records the value of a system variable in a SET, if it reads back as written.
func (st *State) SetHere(name, value string) {
	name = HereName(name)
	if IsDefault(value) {
		delete(st.here, name)
		delete(st.Sysvars, name)
		delete(st.Sysvars, otherName(name))
		return
	}
	usual, asked := Asked[name]
	if !asked {
		return
	}
	st.keepHere(name, nil)
	word := strings.ToUpper(Unquote(value))
	_, number := usual.(uint64)
	n, err := strconv.ParseUint(value, 10, 64)
	switch {
	case number && err == nil:
		st.keepHere(name, n)
	case name == "tx_read_only" && (word == "ON" || word == "TRUE"):
		st.keepHere(name, uint64(1))
	case name == "tx_read_only" && (word == "OFF" || word == "FALSE"):
		st.keepHere(name, uint64(0))
	case name == "tx_isolation" && slices.Contains(isolationLevels, strings.ReplaceAll(word, "-", " ")):
		st.keepHere(name, word)
	case name == "time_zone" && value != Unquote(value):
		st.keepHere(name, Unquote(value))
	}
}

// keepHere records the value of a variable. nil means a value that only a server would know.
func (st *State) keepHere(name string, value any) {
	if text, is := value.(string); is {
		value = strings.Clone(text)
		if len(text) > LongestName {
			value = nil
		}
	}
	if st.here == nil {
		st.here = make(map[string]any)
	}
	st.here[name] = value
}

// SetNamesHere is SetHere for SET NAMES charset [COLLATE collation]. Without words it is for
// another SET of these variables.
func (st *State) SetNamesHere(words []string) {
	var charset, collation any
	if len(words) > 0 && lex.CharsetByName(Unquote(words[0])) != lex.Unsupported {
		charset = strings.ToLower(Unquote(words[0]))
	}
	if len(words) == 3 {
		collation = strings.ToLower(Unquote(words[2]))
	}
	for _, name := range [...]string{"character_set_client", "character_set_connection", "character_set_results"} {
		st.keepHere(name, charset)
	}
	st.keepHere("collation_connection", collation)
}

var isolationLevels = []string{"READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"}

// SetTransactionHere is SetHere for SET SESSION TRANSACTION, in capital letters with single spaces.
// It keeps the parts that the text does not name.
func (st *State) SetTransactionHere(sql string) {
	for _, name := range [...]string{"tx_isolation", "tx_read_only"} {
		if _, is := st.here[name]; !is {
			st.keepHere(name, Asked[name])
		}
	}
	for word, value := range map[string]uint64{"READ ONLY": 1, "READ WRITE": 0} {
		if strings.Contains(sql, word) {
			st.keepHere("tx_read_only", value)
		}
	}
	for _, level := range isolationLevels {
		if strings.Contains(sql, level) {
			st.keepHere("tx_isolation", strings.ReplaceAll(level, " ", "-"))
		}
	}
}

// Asked are the variables that drivers and command-line clients ask for when they connect, with the
// answers to give without a server: the defaults of MySQL 8 and MariaDB 10.11.
// testdata/connecting.txt says which client asks for which.
var Asked = map[string]any{
	StepVariable:               uint64(1),
	"character_set_client":     "utf8mb4",
	"character_set_connection": "utf8mb4",
	"character_set_database":   "utf8mb4",
	"character_set_results":    "utf8mb4",
	"character_set_server":     "utf8mb4",
	"collation_connection":     "utf8mb4_general_ci",
	"collation_server":         "utf8mb4_general_ci",
	"init_connect":             "",
	"interactive_timeout":      uint64(28800),
	"license":                  "GPL",
	"lower_case_table_names":   uint64(0),
	"max_allowed_packet":       uint64(16 << 20),
	"net_write_timeout":        uint64(60),
	"performance_schema":       uint64(0),
	"query_cache_size":         uint64(0),
	"query_cache_type":         "OFF",
	"sql_auto_is_null":         uint64(0),
	"sql_mode":                 "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION",
	"system_time_zone":         "UTC",
	"time_zone":                "SYSTEM",
	"tx_isolation":             "REPEATABLE-READ", // and transaction_isolation
	"tx_read_only":             uint64(0),         // and transaction_read_only
	"version_comment":          "seqproxy, keys only",
	"wait_timeout":             uint64(28800),
}

// VariableHere returns a variable where no server can be asked, by HereName: the session's own
// value, or the usual one. ok is false if neither is certain.
func (st *State) VariableHere(name string, usual any, hasUsual bool) (value any, ok bool) {
	if set, is := st.here[name]; is {
		return set, set != nil
	}
	// A variable in Sysvars was set while there was a server.
	return usual, hasUsual && st.Sysvars[name] == 0 && st.Sysvars[otherName(name)] == 0
}
