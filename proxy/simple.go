package proxy

import (
	"fmt"
	"math"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/statement"
)

// What drivers and tools ask when they connect, and what they are told when there
// is no server to ask. Numbers are the defaults of MySQL 8 and MariaDB 10.11.
var (
	simpleNumbers = map[string]uint64{
		"auto_increment_increment": 1,
		"auto_increment_offset":    1,
		"big_tables":               0,
		"foreign_key_checks":       1,
		"interactive_timeout":      28800,
		"group_concat_max_len":     1024,
		"log_bin":                  0,
		"lower_case_file_system":   0,
		"lower_case_table_names":   0,
		"max_allowed_packet":       16 << 20,
		"net_buffer_length":        16384,
		"net_read_timeout":         30,
		"net_write_timeout":        60,
		"performance_schema":       0,
		"port":                     0,
		"profiling":                0,
		"protocol_version":         10,
		"query_cache_size":         0,
		"read_only":                0,
		"sql_auto_is_null":         0,
		"sql_safe_updates":         0,
		"sql_select_limit":         math.MaxUint64,
		"super_read_only":          0,
		"transaction_read_only":    0,
		"tx_read_only":             0,
		"unique_checks":            1,
		"wait_timeout":             28800,
	}
	simpleTexts = map[string]string{
		"character_set_client":     "utf8mb4",
		"character_set_connection": "utf8mb4",
		"character_set_database":   "utf8mb4",
		"character_set_filesystem": "binary",
		"character_set_results":    "utf8mb4",
		"character_set_server":     "utf8mb4",
		"character_set_system":     "utf8mb3",
		"collation_connection":     "utf8mb4_general_ci",
		"collation_database":       "utf8mb4_general_ci",
		"collation_server":         "utf8mb4_general_ci",
		"init_connect":             "",
		"lc_messages":              "en_US",
		"lc_time_names":            "en_US",
		"license":                  "GPL",
		"query_cache_type":         "OFF",
		"sql_mode":                 "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION",
		"system_time_zone":         "UTC",
		"time_zone":                "SYSTEM",
		"transaction_isolation":    "REPEATABLE-READ",
		"tx_isolation":             "REPEATABLE-READ",
		"version_comment":          "seqproxy, keys only",
		"version_compile_machine":  runtime.GOARCH,
		"version_compile_os":       "Linux",
	}
)

// simpleSwitches are those of the numbers that SHOW VARIABLES tells as ON or OFF.
var simpleSwitches = []string{
	"autocommit", "big_tables", "foreign_key_checks", "log_bin", "lower_case_file_system", "performance_schema", "profiling", "read_only", "sql_auto_is_null", "sql_safe_updates", "super_read_only", "transaction_read_only",
	"tx_read_only", "unique_checks",
}

// simpleNames are the variables that SHOW VARIABLES lists where there is no server.
var simpleNames = sync.OnceValue(func() []string {
	names := []string{"autocommit", "have_ssl", "hostname", "identity", "last_insert_id", "version"}
	for name := range simpleNumbers {
		names = append(names, name)
	}
	for name := range simpleTexts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
})

// variableRows are what SHOW VARIABLES tells.
func (s *session) variableRows() (rows [][]any) {
	for _, name := range simpleNames() {
		value, ok := s.simpleVariable(name)
		if !ok {
			continue // set to what only a server knows
		}
		text := fmt.Sprint(value)
		if slices.Contains(simpleSwitches, name) {
			text = "OFF"
			if value != uint64(0) {
				text = "ON"
			}
		}
		rows = append(rows, []any{name, text})
	}
	return rows
}

// warningColumns are those of SHOW WARNINGS.
var warningColumns = []protocol.Column{
	textColumn("Level", 7),
	{Name: "Code", Charset: charsetBinary, Length: 4, Type: mysql.MYSQL_TYPE_LONGLONG, Flags: flagNotNull | flagUnsigned | flagBinary},
	textColumn("Message", 512),
}

const charsetUTF8MB4 = 45 // utf8mb4_general_ci

func textColumn(name string, chars uint32) protocol.Column {
	return protocol.Column{Name: name, Charset: charsetUTF8MB4, Length: 4 * chars, Type: mysql.MYSQL_TYPE_VAR_STRING, Decimals: 31}
}

// simpleUnion answers several of what simpleTable answers, with UNION between them. Of
// different types they are not answered: a server makes one of them, by rules of its own.
func (s *session) simpleUnion(parts [][]statement.SimpleItem, all bool) (*protocol.Table, error) {
	whole, err := s.simpleTable(parts[0])
	if err != nil {
		return nil, err
	}
	for _, items := range parts[1:] {
		t, err := s.simpleTable(items)
		if err != nil {
			return nil, err
		}
		for i := range t.Columns {
			if t.Columns[i].Type != whole.Columns[i].Type {
				return nil, s.noServer()
			}
		}
		if row := t.Rows[0]; all || !slices.ContainsFunc(whole.Rows, func(other []any) bool { return sameRow(row, other) }) {
			whole.Rows = append(whole.Rows, row)
		}
	}
	return whole, nil
}

// sameRow compares as UNION does: letter case does not count.
func sameRow(a, b []any) bool {
	return slices.EqualFunc(a, b, func(x, y any) bool { return strings.EqualFold(fmt.Sprint(x), fmt.Sprint(y)) })
}

// simpleTable answers a SELECT of system variables, literals and functions without
// arguments.
func (s *session) simpleTable(items []statement.SimpleItem) (*protocol.Table, error) {
	t := &protocol.Table{}
	var row []any
	for i := range items {
		value, ok := s.simpleValue(&items[i])
		switch {
		case !ok && items[i].Kind == statement.SimpleVariable && !slices.Contains(simpleNames(), items[i].Name):
			return nil, sqlError(mysql.ER_UNKNOWN_SYSTEM_VARIABLE, "HY000", "Unknown system variable '%.64s'", items[i].Name)
		case !ok:
			return nil, s.noServer()
		}
		c := textColumn(items[i].Column, 64)
		switch value.(type) {
		case uint64:
			c = protocol.Column{
				Name: items[i].Column, Charset: charsetBinary, Length: 21, Type: mysql.MYSQL_TYPE_LONGLONG,
				Flags: flagUnsigned | flagBinary,
			}
		case time.Time:
			c = metadataColumn(items[i].Column, "time")
		case nil:
			c.Type, c.Charset, c.Length = mysql.MYSQL_TYPE_NULL, charsetBinary, 0
		}
		t.Columns = append(t.Columns, c)
		row = append(row, value)
	}
	t.Rows = [][]any{row}
	return t, nil
}

func (s *session) simpleValue(it *statement.SimpleItem) (value any, ok bool) {
	switch it.Kind {
	case statement.SimpleVariable:
		return s.simpleVariable(it.Name)
	case statement.SimpleFunction:
		return s.simpleFunction(it.Name)
	case statement.SimpleString:
		return it.Value, true
	case statement.SimpleNumber:
		n, err := strconv.ParseUint(it.Value, 10, 64)
		return n, err == nil
	case statement.SimpleWord:
		switch it.Value {
		case "true":
			return uint64(1), true
		case "false":
			return uint64(0), true
		}
		return nil, true
	}
	return nil, false
}

func (s *session) simpleVariable(name string) (value any, ok bool) {
	switch name {
	case "autocommit":
		if s.status().Has(protocol.Autocommit) {
			return uint64(1), true
		}
		return uint64(0), true
	case "last_insert_id", "identity":
		return s.state.lastID.known()
	case "version":
		return s.version(), true
	case "version_comment":
		if s.atAdmin {
			return "seqproxy, admin address", true
		}
	case "have_ssl":
		if s.set.TLS == nil {
			return "DISABLED", true
		}
		return "YES", true
	case "hostname":
		name, err := os.Hostname()
		return name, err == nil
	case "port":
		if addr, ok := s.client.LocalAddr().(*net.TCPAddr); ok {
			return uint64(addr.Port), true
		}
	}
	number, isNumber := simpleNumbers[name]
	if name == "auto_increment_increment" {
		number = s.set.Sequences.Turns() // see takeTurns
	}
	text, isText := simpleTexts[name]
	switch told, ok := s.state.told[name]; {
	case ok && isNumber:
		number, _ = strconv.ParseUint(told, 10, 64) // checked before it was kept
	case ok:
		text = told
	case s.state.sysvars[name] > 0 && name != "tx_isolation" && name != "tx_read_only":
		return nil, false // set to what only a server knows
	}
	if isNumber {
		return number, true
	}
	return text, isText
}

func (s *session) simpleFunction(name string) (value any, ok bool) {
	switch name {
	case "database", "schema":
		if s.state.schema == "" {
			return nil, true
		}
		return s.state.schema, true
	case "version":
		return s.version(), true
	case "user", "current_user", "session_user", "system_user":
		return s.user.Name + "@" + protocol.HostOf(s.client.RemoteAddr()), true
	case "connection_id":
		return uint64(s.id), true
	case "last_insert_id":
		return s.state.lastID.known()
	case "now", "current_timestamp", "localtime", "localtimestamp", "sysdate":
		zone, ok := s.timeZone()
		return time.Now().In(zone), ok
	case "utc_timestamp":
		return time.Now().UTC(), true
	case "unix_timestamp":
		return uint64(time.Now().Unix()), true
	}
	return nil, false
}

// timeZone is the session's: that of system_time_zone, or an offset that was set.
func (s *session) timeZone() (zone *time.Location, known bool) {
	told, ok := s.state.told["time_zone"]
	switch {
	case !ok && s.state.sysvars["time_zone"] > 0:
		return time.UTC, false
	case !ok, strings.EqualFold(told, "SYSTEM"):
		return time.UTC, true
	}
	at, err := time.Parse("Z07:00", told)
	_, offset := at.Zone()
	return time.FixedZone(told, offset), err == nil
}
