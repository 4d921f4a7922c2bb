//go:build seqproxy_fault_floor

package sequence

// floorEnforced is taken out on purpose; never for use.
const floorEnforced = false
