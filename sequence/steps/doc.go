// Package steps carries out the steps of a change of the set of sequence servers on one of them:
// each is one transaction in its tables. What is done, and in which order, package change decides.
//
// Start at [Store]. reader.go is what a server tells of itself, stepper.go takes it from proposed
// to accepted, and settler.go has it obey a plan, or go on as before. Rows are frozen and given
// back in freeze.go, and begin where the plan does in begin.go. proxies.go keeps known who may hold
// numbers.
package steps
