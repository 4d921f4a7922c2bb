package inspect

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Ask runs a statement that changes nothing. It returns the rows, each value as text and NULL as
// "".
type Ask func(ctx context.Context, text string) ([][]string, error)

// Server is what a server says about itself to an account.
type Server struct {
	Account   Account
	Version   string
	MariaDB   bool
	Variables map[string]string // global variables, by name in lower case

	// Ahead is how far the server's clock is ahead of this machine's. The error is at most Doubt.
	Ahead, Doubt time.Duration
}

// Account is an account on a server.
type Account struct{ User, Host string }

// String returns the account as in GRANT.
func (a Account) String() string { return quoteText(a.User) + "@" + quoteText(a.Host) }

func quoteText(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", "''").Replace(s) + "'"
}

// variables are the variables to read.
var variables = []string{
	"version", "version_comment", "hostname", "port", "server_id", "server_uuid", "datadir", "read_only", "super_read_only",
	"innodb_read_only", "innodb_force_recovery",
	"innodb_flush_log_at_trx_commit", "sync_binlog", "log_bin", "sql_mode", "max_connections", "wait_timeout",
	"auto_increment_increment", "auto_increment_offset", "lower_case_table_names", "wsrep_on", "require_secure_transport",
}

// Read asks a server for its properties, and for the account's rights.
func Read(ctx context.Context, ask Ask) (*Server, error) {
	s := &Server{Variables: make(map[string]string)}
	before := time.Now()
	rows, err := ask(ctx, "SELECT UTC_TIMESTAMP(6), CURRENT_USER()")
	after := time.Now()
	if err == nil && (len(rows) != 1 || len(rows[0]) != 2) {
		err = fmt.Errorf("got %d rows, want 1", len(rows))
	}
	if err != nil {
		return nil, fmt.Errorf("ask for clock and account: %w", err)
	}
	clock, err := time.Parse("2006-01-02 15:04:05.999999", rows[0][0])
	if err != nil {
		return nil, fmt.Errorf("read the clock: %w", err)
	}
	s.Doubt = after.Sub(before) / 2
	s.Ahead = clock.Sub(before.Add(s.Doubt))
	at := strings.LastIndexByte(rows[0][1], '@')
	s.Account = Account{User: rows[0][1][:max(at, 0)], Host: rows[0][1][at+1:]}

	rows, err = ask(ctx, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('"+strings.Join(variables, "', '")+"')")
	if err != nil {
		return nil, fmt.Errorf("read variables: %w", err)
	}
	for _, r := range rows {
		s.Variables[strings.ToLower(r[0])] = r[1]
	}
	s.Version = strings.TrimPrefix(s.Variables["version"], "5.5.5-") // MariaDB's prefix for old replicas
	s.MariaDB = strings.Contains(s.Version, "MariaDB") || strings.Contains(s.Variables["version_comment"], "MariaDB") || strings.Contains(s.Variables["version_comment"], "mariadb")
	return s, nil
}

// Name returns the server's kind and version, "MariaDB 10.11.6".
func (s *Server) Name() string {
	number, _, _ := strings.Cut(s.Version, "-")
	return s.kind() + " " + number
}

func (s *Server) kind() string {
	if s.MariaDB {
		return "MariaDB"
	}
	return "MySQL"
}

// IsOn reports whether a variable is on. On some servers its value is a number and on others a
// word.
func (s *Server) IsOn(variable string) bool {
	v := s.Variables[variable]
	return v != "" && v != "0" && !strings.EqualFold(v, "OFF")
}

// StartedReadOnly returns the option that keeps everybody from writing to InnoDB tables, whatever
// read_only says, or "". Under forced recovery MySQL refuses changes. MariaDB accepts them, or
// shows innodb_read_only as on.
func (s *Server) StartedReadOnly() string {
	switch {
	case s.IsOn("innodb_read_only"):
		return "innodb_read_only"
	case !s.MariaDB && s.IsOn("innodb_force_recovery"):
		return "innodb_force_recovery"
	}
	return ""
}

// Number returns a variable as a number, or 0 if it is none.
func (s *Server) Number(variable string) uint64 {
	n, err := strconv.ParseUint(s.Variables[variable], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Place identifies a server, whichever of its addresses was used. Servers that run at the same time
// have different Places.
func (s *Server) Place() string {
	return fmt.Sprintf("%s:%s %s %s %s", s.Variables["hostname"], s.Variables["port"], s.Variables["server_id"], s.Variables["server_uuid"], s.Variables["datadir"])
}
