//go:build seqproxy_fault_session

package sequence

// sessionEnforced is taken out on purpose; never for use.
const sessionEnforced = false
