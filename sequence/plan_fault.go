//go:build seqproxy_fault_plan

package sequence

// planEnforced is taken out on purpose; never for use.
const planEnforced = false
