//go:build seqproxy_fault_holder

package sequence

// guardEnforced is taken out on purpose; never for use.
const guardEnforced = false
