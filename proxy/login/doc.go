// Package login lets clients in: it greets them, checks who they are or has a server check that,
// bounds the logins at the same time, and delays addresses that have failed often.
//
// Start at [Login], the login of one client. A [Gate] is shared by the logins of one proxy, and a
// [Policy] has the settings.
package login
