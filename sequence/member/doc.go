// Package member reserves numbers on sequence servers, and keeps each from giving one twice.
//
// Start from [Server], which is one of them. [Server.Reserve] makes attempts: each ends with an outcome
// of package store, and remedy.go says what follows it. Numbers are taken below a ceiling, which other
// nodes of a group know (package group) or another member has recorded (witness.go), and above all that
// this process has had (package floor) and has seen in the row (lowest.go). Before the first one the
// process enters itself among the proxies (registration.go).
//
// [Several] knows on which of several members to reserve: on the home of an ORDER sequence, else on the
// next one that can. Which plan is in force, and what the members have of a name, it asks an
// [Agreement], which stands above.
package member
