//go:build !seqproxy_fault_floor

package sequence

// floorEnforced: a proxy remembers the highest number that it got of each sequence, and takes none at or below it. Without that the tests
// must find a duplicate, or they prove nothing: build tag seqproxy_fault_floor.
const floorEnforced = true
