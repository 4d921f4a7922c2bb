package stats

// End is why a client was disconnected.
type End uint8

const (
	EndQuit        End = iota // the client has said so
	EndClientGone             // the client's connection has ended without a word
	EndBackendGone            // its server, or the connection to it
	EndAuth                   // the login was refused: see Refusal
	EndMalformed              // it does not speak the protocol, or its TLS handshake failed
	// too slow with its login, to read an answer, to send a statement, or idle for wait_timeout
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
	AuthPassword    Refusal = iota // it is not the user's
	AuthUnknownUser                // there is none of that name
	// what the user, or the proxy, demands of connections: TLS, a certificate
	AuthRequirement
	AuthByServer // the server refused it
	// a login that the server is to check, which cannot be relayed safely
	AuthRelay
	// one at the admin address of a user who is neither admin nor monitor
	AuthNotAdmin
	authReasons
)

var authNames = [authReasons]string{
	AuthPassword: "password", AuthUnknownUser: "unknown_user", AuthRequirement: "requirement", AuthByServer: "server", AuthRelay: "relay",
	AuthNotAdmin: "not_admin",
}
