package state

// InsertModes is what a session has set for INSERTs.
type InsertModes struct {
	Conn              ConnID // the connection that was asked; 0: none, or something may have changed it since
	Version           int    // of the session's variables
	Increment         uint64
	ZeroStays, Strict bool
}
