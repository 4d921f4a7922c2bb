//go:build seqproxy_fault_bound

package sequence

// boundEnforced is taken out on purpose; never for use.
const boundEnforced = false
