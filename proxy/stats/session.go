package stats

import (
	"time"

	"seqproxy/proxy/state"
)

// SessionState is what a session does.
type SessionState uint8

// The states of sessions.
const (
	SessionLogin SessionState = iota // it logs in, or changes its user
	SessionIdle                      // it waits for its client
	SessionBusy                      // it has a command in hand
	SessionStates
)

// String returns the state's name in metrics and tables.
func (s SessionState) String() string {
	return [SessionStates]string{"login", "idle", "busy"}[s]
}

// SessionInfo is what one session is at one moment. But for State and Since it is from when
// the client was last waited for.
type SessionInfo struct {
	ID         uint32 // what the client holds for its connection id
	User       string // "" before the login
	Client     string // its address
	AtAdmin    bool   // it came to the admin address
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
