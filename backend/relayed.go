package backend

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"seqproxy/protocol"
)

// afterRelay completes a login that the client made itself: it checks what the server
// has looked at, and asks what is not known of the server yet.
func (c *Conn) afterRelay(relay *protocol.RelayedLogin) error {
	if err := relay.AwaitServer(); err != nil {
		return err
	}
	if c.node.network == "unix" && c.hello.MariaDB {
		if err := c.checkTrust(relay); err != nil {
			return err
		}
	}
	if c.node.knowsMode() {
		return nil
	}
	var refused *protocol.ServerError
	if err := c.askMode(false); err != nil && !errors.As(err, &refused) {
		// refused while the password is expired
		return err
	}
	return nil
}

// makeUp logs in to a server that has counted a client's login as a fault of the proxy's
// host: a login that succeeds has the server forget what it has counted. Where no account
// is known to log in with, it is the next client's that succeeds.
func (r *Routes) makeUp(ctx context.Context, t target) {
	if t.access.probeCredentials(r.probe).User != "" {
		_ = r.probeNode(ctx, t) // what is wrong with the node is told elsewhere
	}
}

// setWideCollation sets a collation that the login had no room for, if the server knows it.
func (c *Conn) setWideCollation(id uint16) error {
	if id <= 255 {
		return nil
	}
	from := "COLLATION_NAME FROM information_schema.COLLATIONS"
	if c.hello.MariaDB { // which has no ids there for those of several character sets
		from = "FULL_COLLATION_NAME FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY"
	}
	rows, err := c.Query(fmt.Sprintf("SELECT CHARACTER_SET_NAME, %s WHERE ID = %d LIMIT 1", from, id))
	if err == nil && len(rows) == 1 && len(rows[0]) == 2 {
		_, err = c.Query(fmt.Sprintf("SET NAMES %s COLLATE %s", rows[0][0], rows[0][1]))
	}
	var refused *protocol.ServerError
	if errors.As(err, &refused) {
		// while the password is expired, or by a server of before such names
		return nil
	}
	return err
}

// checkTrust refuses the login if anything but the client's answer can prove the account. A MariaDB
// account may have several plugins, any of which is enough (IDENTIFIED VIA mysql_native_password OR
// unix_socket). The server does not say which one it was. It may ask the client for a password,
// find it wrong, and let us in all the same, because of the user that the proxy runs as.
func (c *Conn) checkTrust(relay *protocol.RelayedLogin) error {
	// Of a proxy user only the account that it became can be seen.
	rows, err := c.Query("SELECT @@proxy_user")
	var refused *protocol.ServerError
	switch {
	case errors.As(err, &refused):
		// as 1820, before an expired password is changed: so that cannot be done here
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

// passwordPlugins are MariaDB's that look at nothing but the client's answer.
var passwordPlugins = map[string]bool{
	"mysql_native_password": true, "ed25519": true, "parsec": true, "caching_sha2_password": true, "sha256_password": true,
}

// untrusted returns the first plugin in an answer to MariaDB's SHOW CREATE USER that
// may look at something else than a password, or "". Text that it cannot read counts
// as one.
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

// unquoted splits a text at white space and leaves out what is quoted.
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
			if i+1 < len(text) && text[i+1] == quote { // doubled
				i++
				continue
			}
			break
		}
	}
	return strings.Fields(bare.String()), true
}
