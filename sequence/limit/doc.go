// Package limit decides how far the numbers of a group of nodes may go, and who may give them.
//
// Each node has a [Record]: who the holders are, and for each sequence how far a holder wants to
// go, and may go. Numbers are given in three steps:
//
//	hold    a node that is chosen becomes the holder in a new term, and each sequence begins above
//	        all that any holder wanted before it, as far as any node has seen that
//	open    the holder writes how far it wants to go with a sequence; once a majority of the nodes
//	        shows that under its term, it may
//	give    a reservation counts below what was granted, and on a node that is the holder still
//
// A node that shows a newer term refuses by that. Any two majorities meet. So a new holder knows of
// each window from which a number was given.
//
// The package knows no SQL and no network. What it decides is done by a [Store], the tables of the
// chosen node, and seen by [Nodes]. The simulation in seqproxy/test/simulation tries it on nodes
// that lag, crash, forget and come back.
//
// Start from [Group].
package limit
