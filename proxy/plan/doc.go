// Package plan decides what becomes of a statement, from what is known of its text, the session's
// state and the server it goes to. It does no I/O and changes nothing of these: the session carries
// out what it says.
//
// Start at Planner. Text decides about a text with calls, Fill about one that gives bound columns
// no numbers. The Verdict is Go, with an Action; Asks, with Needs that the session puts into Facts
// before it asks again; or Refuse. CourseOf says what other texts are for. Bring says what is
// brought to a server before it runs a statement. Traits are what is known of a prepared one.
package plan
