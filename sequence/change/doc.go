// Package change changes the set of sequence servers: by one that is added, or one that is
// removed. It decides; what it decides is done by a [Store], which is one member's tables.
//
// A change is made in steps. Each is one transaction on one member:
//
//	proposed   the plan is written down on all members: there is no other change
//	frozen     every row stands at the end of its column, so that nobody reserves; where it stood is
//	           saved, and the member tells it
//	accepted   a member that stays has the floors, which are the highest that any member gave of each
//	           name, and has accepted; once all have, the change is decided
//	in force   the rows of a member are set to its first position above the floors, and it obeys the
//	           plan
//
// All members must be there, but for one that is removed. Before a change is decided it can be
// aborted, once one of those that stay has promised to accept it no more. Only then the rows get
// back what was saved. A coordinator that is killed leaves what another one ends, where the same
// is said again.
//
// The package knows no SQL and no network: it is pure, and store, steps and members import it, as
// they have its values. Its tests try it on simulated members, in every
// order of steps that was thought of.
//
// Start at [Coordinator].
package change
