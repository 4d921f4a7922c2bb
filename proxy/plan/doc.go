// Package plan decides what becomes of a statement, from what is known of its text, the session's
// state and the server it goes to. It does no I/O and changes nothing of these: the session carries
// out what it says.
//
// Start at Planner. Text decides about a text with calls, Fill about one that gives bound columns
// no numbers. The Verdict is Go, with an Action; Asks, with Needs that the session puts into Facts
// before it asks again; or Refuse. CourseOf returns what other texts are for. Bring returns what a
// server must get before it runs a statement. Traits are what an execution needs of its statement.
package plan
