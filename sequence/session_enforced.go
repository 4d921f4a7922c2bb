//go:build !seqproxy_fault_session

package sequence

// sessionEnforced: a connection that reserves numbers has autocommit, strict mode and the rest of session, whatever the server's own
// settings are. Without that the tests must find a duplicate, or they prove nothing: build tag seqproxy_fault_session.
const sessionEnforced = true
