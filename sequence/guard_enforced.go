//go:build !seqproxy_fault_holder

package sequence

// guardEnforced: a group gives numbers only as its holder and below its ceiling. Without that the tests must find a duplicate, or they
// prove nothing: build tag seqproxy_fault_holder.
const guardEnforced = true
