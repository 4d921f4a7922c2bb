//go:build !seqproxy_fault_bound

package sequence

// boundEnforced: a member gives no number above what another one knows of. Without that the tests must find a duplicate, or they prove nothing: build
// tag seqproxy_fault_bound.
const boundEnforced = true
