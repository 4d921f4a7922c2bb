package login

import (
	"crypto/tls"
	"net"
	"net/netip"
	"slices"
	"time"

	"seqproxy/backend"
	"seqproxy/protocol"
)

// Policy is the settings of logins. It is immutable.
type Policy struct {
	Users        map[string]*Account // users that the proxy itself checks, by name
	OldPasswords bool                // a user has an old password
	// Relay lets the default shard's server check other users. Of these, Admins may change
	// sequences, and Monitors see what admins see.
	Relay            bool
	Admins, Monitors []string

	MaxConnections     int           // sessions of all users
	MaxUserConnections int           // of one user; 0: no limit
	Timeout            time.Duration // bounds a login, with the wait for a place
	Queue              *Queue        // nil: no bound
	Failures           Rules

	// Balancers are the addresses whose connections must begin with a PROXY header. IPv4 does not
	// stand here as IPv6.
	Balancers []netip.Prefix

	Routes      *backend.Routes // their default shard greets
	Compression bool            // offered to clients if the servers offer it
	TLS         *tls.Config     // nil: TLS is not offered
	RequireTLS  bool            // clients without it get 3159
	RSA         *protocol.RSAKeys
}

// The greeting while no server can be asked.
const (
	NoServerVersion   = "8.0.11-seqproxy"
	noServerCollation = 45 // utf8mb4_general_ci
)

// plainGreeting returns the greeting while no server can be asked.
func (p *Policy) plainGreeting(id uint32, arrived func() error) *protocol.ServerLogin {
	g := &protocol.ServerLogin{
		Version: NoServerVersion, ConnectionID: id, Capabilities: protocol.Common, Collation: noServerCollation,
		Status: protocol.Autocommit, TLS: p.TLS, RequireTLS: p.RequireTLS, RSA: p.RSA, OldPasswords: p.OldPasswords,
		ProxyHeader: arrived != nil, Arrived: arrived,
	}
	if !p.Compression {
		g.Capabilities &^= protocol.Compressing
	}
	return g
}

// greeting returns the greeting of a client: the default shard's version and collation, and the
// capabilities that all servers have.
func (p *Policy) greeting(id uint32, arrived func() error) *protocol.ServerLogin {
	g := p.plainGreeting(id, arrived)
	if hello, ok := p.Routes.Greeting(); ok {
		g.Version, g.Collation, g.Old = hello.Version, hello.Collation, hello.MariaDB
		g.Capabilities = (protocol.Relayable | protocol.Compressing) & hello.Capabilities
		g.Prove = p.TLS != nil && hello.ProvesCertificates()
		if p.Relay {
			g.Capabilities |= protocol.MultiFactor & hello.Capabilities
		}
	} else if p.Routes.Default != nil {
		g.Capabilities &^= protocol.SessionTrack // clients can do without it
	}
	if !p.Compression {
		g.Capabilities &^= protocol.Compressing
	}
	return g
}

// adminGreeting returns the greeting at the admin address: what the default shard's server last
// reported, and what every server can do.
func (p *Policy) adminGreeting(id uint32, arrived func() error) *protocol.ServerLogin {
	g := p.plainGreeting(id, arrived)
	if hello, ok := p.Routes.Greeting(); ok {
		g.Version, g.Collation = hello.Version, hello.Collation
		g.Prove = p.TLS != nil && hello.ProvesCertificates()
	}
	return g
}

// fromBalancer reports whether connections from addr begin with a PROXY header.
func (p *Policy) fromBalancer(addr net.Addr) bool {
	if len(p.Balancers) == 0 {
		return false
	}
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return false
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("") // a prefix has no zone
	return slices.ContainsFunc(p.Balancers, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// verify lets a client prove that it is a user of the proxy. The account's Password is then the
// client's, for the servers.
func (p *Policy) verify(attempt *protocol.Attempt) (*Account, error) {
	a, exists := p.Users[attempt.Hello.User]
	if !exists {
		a = NoAccount
	}
	err := attempt.Verify(protocol.Account{Password: a.Password, OldPassword: a.OldPassword, Require: a.Require}, exists)
	if attempt.UsedOld {
		other := *a
		other.Password, other.OldPassword = a.OldPassword, a.Password
		a = &other
	}
	return a, err
}

// relays reports whether the default shard's server checks a user's login: with Relay, every user
// that the configuration does not name.
func (p *Policy) relays(user string) bool {
	if !p.Relay {
		return false
	}
	if _, exists := p.Users[user]; exists {
		return false
	}
	// The server cuts a long name, which must not bypass the rules for a configured user. MySQL
	// cuts at 96 bytes, MariaDB at 128 characters.
	const bytesMySQL, charactersMariaDB = 96, 128
	if len(user) > bytesMySQL {
		if _, exists := p.Users[user[:bytesMySQL]]; exists {
			return false
		}
	}
	characters := 0
	for i := range user {
		if characters++; characters > charactersMariaDB {
			_, exists := p.Users[user[:i]]
			return !exists
		}
	}
	return true
}
