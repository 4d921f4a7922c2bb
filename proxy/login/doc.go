// Package login lets clients in: it greets them, checks who they are or has a server check that,
// bounds how many log in at the same time, and lets an address wait that has failed often.
//
// Start at Login, which is the login of one client. A Gate is what the logins of one proxy share,
// and a Policy what its settings say of them. What a session is after its login is package proxy's.
package login
