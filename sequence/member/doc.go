// Package member reserves numbers on sequence servers, and keeps any number from being given twice.
//
// Start at [Server], one sequence server. [Server.Reserve] makes attempts: each ends with an
// outcome of package store, and remedy.go says what follows. Numbers are taken below a ceiling,
// which other nodes of a group (package group) or another member (witness.go) have recorded, and
// above all that this process has reserved (package floor) or seen in the row (went_back.go).
// Before the first reservation the process registers among the proxies (registration.go).
//
// [Several] chooses the member to reserve on: the home of an ORDER sequence, else the next one that
// can. It asks an [Agreement], from the layer above, for the plan in force, and for the members'
// rows of a name.
package member
