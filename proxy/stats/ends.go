package stats

// End is why a client was disconnected.
type End uint8

const (
	EndQuit        End = iota // the client said so
	EndClientGone             // the client's connection ended without COM_QUIT
	EndBackendGone            // its server, or the connection to it, is gone
	EndAuth                   // the login was refused: see Refusal
	EndMalformed              // it does not speak the protocol, or its TLS handshake failed
	// Too slow with its login, to read an answer, to send a statement, or idle for wait_timeout.
	EndTimeout
	EndLimit  // too many connections, logins, or failed logins
	EndDrain  // the proxy shuts down
	EndKilled // KILL
	EndError  // anything else
	endReasons
)

var endNames = [endReasons]string{
	EndQuit: "quit", EndClientGone: "client_gone", EndBackendGone: "backend_gone", EndAuth: "auth", EndMalformed: "malformed",
	EndTimeout: "timeout", EndLimit: "limit", EndDrain: "drain", EndKilled: "killed", EndError: "error",
}

// Refusal is why a login, or a change of user, was refused.
type Refusal uint8

const (
	AuthPassword    Refusal = iota // the password is wrong
	AuthUnknownUser                // no user has that name
	// The user, or the proxy, demands something of connections: TLS, a certificate.
	AuthRequirement
	AuthByServer // the server refused it
	// The login is one for the server to check, and cannot be relayed safely.
	AuthRelay
	// The user at the admin address is neither admin nor monitor.
	AuthNotAdmin
	authReasons
)

var authNames = [authReasons]string{
	AuthPassword: "password", AuthUnknownUser: "unknown_user", AuthRequirement: "requirement", AuthByServer: "server", AuthRelay: "relay",
	AuthNotAdmin: "not_admin",
}
