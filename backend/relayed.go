package backend

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"seqproxy/protocol"
)

// makeUp logs in successfully, so that the server forgets the faults that it has counted for the
// proxy's host. A server counts some failed logins of clients as such faults. Without an account
// the next client that logs in has the same effect.
func (r *Routes) makeUp(ctx context.Context, t target) {
	if t.access.probeCredentials(r.probe).User != "" {
		_ = r.probeNode(ctx, t) // probes log what is wrong with the node
	}
}

// setWideCollation sets a collation above 255, which has no room in a login, if the server knows
// it.
func (c *Conn) setWideCollation(id uint16) error {
	if id <= 255 {
		return nil
	}
	from := "COLLATION_NAME FROM information_schema.COLLATIONS"
	if c.Hello.MariaDB { // MariaDB lists a collation of several character sets there without an id
		from = "FULL_COLLATION_NAME FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY"
	}
	rows, err := c.Query(fmt.Sprintf("SELECT CHARACTER_SET_NAME, %s WHERE ID = %d LIMIT 1", from, id))
	if err == nil && len(rows) == 1 && len(rows[0]) == 2 {
		_, err = c.Query(fmt.Sprintf("SET NAMES %s COLLATE %s", rows[0][0], rows[0][1]))
	}
	var refused *protocol.ServerError
	if errors.As(err, &refused) {
		// The password is expired, or the server is too old for such names.
		return nil
	}
	return err
}

// checkTrust refuses a relayed login over a Unix socket unless only the client's answer can have
// proved the account. A MariaDB account may have several plugins, and any one is enough
// (IDENTIFIED VIA mysql_native_password OR unix_socket). The server does not say which one it was.
// It may accept the login in spite of a wrong password, because it trusts the user that the proxy
// runs as.
func (c *Conn) checkTrust(relay *protocol.RelayedLogin) error {
	// For a proxy user, only the account that it became is visible.
	rows, err := c.Query("SELECT @@proxy_user")
	var refused *protocol.ServerError
	switch {
	case errors.As(err, &refused):
		// The answer is 1820 while the password is expired. So it cannot be changed here.
		return refused
	case err != nil:
		return err
	case len(rows) != 1 || len(rows[0]) != 1 || rows[0][0] != nil:
		return relay.Refuse("it is a proxy user, whose account cannot be seen, and over a Unix socket the server may have looked at the proxy's user id")
	}
	rows, err = c.Query("SHOW CREATE USER")
	switch {
	case errors.As(err, &refused):
		return refused
	case err != nil:
		return err
	case len(rows) != 1 || len(rows[0]) != 1:
		return relay.Refuse("the server does not show how the account is checked")
	}
	if plugin := untrusted(string(rows[0][0])); plugin != "" {
		return relay.Refuse(fmt.Sprintf("the account has the plugin %s, for which the server may have looked at the proxy's user id: use a node address with a port, or give the account passwords only", plugin))
	}
	return nil
}

// passwordPlugins are the plugins of MariaDB that judge by the client's answer alone.
var passwordPlugins = map[string]bool{
	"mysql_native_password": true, "ed25519": true, "parsec": true, "caching_sha2_password": true, "sha256_password": true,
}

// untrusted returns the first plugin in an answer to MariaDB's SHOW CREATE USER that may judge by
// something other than a password, or "". It counts text that it cannot read as such a plugin.
func untrusted(create string) (plugin string) {
	words, ok := unquoted(create)
	if !ok || len(words) < 2 || !strings.EqualFold(words[0], "CREATE") || !strings.EqualFold(words[1], "USER") {
		return "that cannot be read"
	}
	for i, word := range words {
		if !strings.EqualFold(word, "VIA") && !strings.EqualFold(word, "OR") {
			continue
		}
		if i+1 == len(words) {
			return "that cannot be read"
		}
		if name := strings.ToLower(words[i+1]); !passwordPlugins[name] {
			return name
		}
	}
	return ""
}

// unquoted splits a text at white space and drops quoted parts.
func unquoted(text string) (words []string, ok bool) {
	var bare strings.Builder
	for i := 0; i < len(text); i++ {
		quote := text[i]
		if quote != '\'' && quote != '"' && quote != '`' {
			bare.WriteByte(quote)
			continue
		}
		bare.WriteByte(' ')
		for i++; ; i++ {
			if i >= len(text) {
				return nil, false
			}
			if text[i] == '\\' && quote != '`' {
				i++
				continue
			}
			if text[i] != quote {
				continue
			}
			if i+1 < len(text) && text[i+1] == quote { // a doubled quote
				i++
				continue
			}
			break
		}
	}
	return strings.Fields(bare.String()), true
}
