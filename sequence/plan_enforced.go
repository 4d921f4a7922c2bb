//go:build !seqproxy_fault_plan

package sequence

// planEnforced: numbers are reserved under the plan alone that the member itself obeys. Without that the tests must find a duplicate, or they
// prove nothing: build tag seqproxy_fault_plan.
const planEnforced = true
