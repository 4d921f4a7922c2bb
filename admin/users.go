package admin

import (
	"slices"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/conf"
	"seqproxy/protocol"
	"seqproxy/statement"
)

var userColumns = []protocol.Column{
	word("user", 128),
	word("right", 16),
	word("checked_by", 8),
	number("sessions", mysql.NOT_NULL_FLAG),
	number("max_connections", 0),
	maybe("sequences", 1024),
	maybe("schema", 64),
	maybe("requires", 1024),
}

// userRows lists the users of the configuration, and whoever else is connected or has
// rights. See docs/operations.md for the columns.
func userRows(c Overview, _ *statement.ProxyCommand) (rows [][]any, _ error) {
	cfg := c.Config()
	sessions := make(map[string]uint64)
	for _, u := range c.Server().Stats().Users {
		sessions[u.Name] = u.N
	}
	limit := func(n int) any {
		if n == 0 {
			n = cfg.MaxUserConnections
		}
		if n == 0 {
			return nil
		}
		return uint64(n)
	}
	right := func(name string) string {
		switch {
		case cfg.IsAdmin(name):
			return "admin"
		case cfg.IsMonitor(name):
			return "monitor"
		}
		return ""
	}
	listed := make(map[string]bool)
	for i := range cfg.Users {
		u := &cfg.Users[i]
		listed[u.Name] = true
		rows = append(rows, []any{
			u.Name, right(u.Name), "proxy", sessions[u.Name], limit(u.MaxConnections), allowed(u.Sequences), unlessEmpty(u.Schema), unlessEmpty(required(u)),
		})
	}
	var others []string
	for _, names := range [][]string{cfg.AdminUsers, cfg.MonitorUsers} {
		others = append(others, names...)
	}
	for name := range sessions {
		others = append(others, name)
	}
	slices.Sort(others)
	for _, name := range slices.Compact(others) {
		if !listed[name] {
			rows = append(rows, []any{name, right(name), "server", sessions[name], limit(0), nil, nil, nil})
		}
	}
	return rows, nil
}

// required is what a user's logins must have beside the password.
func required(u *conf.User) string {
	var all []string
	if u.RequireTLS {
		all = append(all, "TLS")
	}
	if u.NeedsCertificate() {
		all = append(all, "certificate")
	}
	if u.CertificateSubject != "" {
		all = append(all, "subject "+u.CertificateSubject)
	}
	if u.CertificateIssuer != "" {
		all = append(all, "issuer "+u.CertificateIssuer)
	}
	return strings.Join(all, ", ")
}

// allowed are the sequences that a user may use: NULL for all, empty for none.
func allowed(sequences []string) any {
	if sequences == nil {
		return nil
	}
	return list(sequences)
}
