package stats

import (
	"time"

	"seqproxy/proxy/state"
)

// SessionState is what a session is doing.
type SessionState uint8

// The states of sessions.
const (
	SessionLogin SessionState = iota // it logs in, or changes its user
	SessionIdle                      // it waits for its client
	SessionBusy                      // it carries out a command
	SessionStates
)

// String returns the state's name in metrics and tables.
func (s SessionState) String() string {
	return [SessionStates]string{"login", "idle", "busy"}[s]
}

// SessionInfo is one session at one moment. All but State and Since are as of its last wait for the
// client.
type SessionInfo struct {
	ID         uint32 // the connection id that the client has
	User       string // "" before the login
	Client     string // its address
	AtAdmin    bool   // the client came to the admin address
	Shards     []string
	Schema     string
	State      SessionState
	Since      time.Time // of State
	Connected  time.Time
	Statements uint64
	Pins       []state.Pin
	// Received and Sent are bytes from and to the client.
	Received, Sent uint64
}
