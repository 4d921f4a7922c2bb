// Package limit decides how far the numbers of a group of nodes may go, and who may give them.
//
// Each node has a [Record]: the holders, and for each sequence how far a holder wants to go and may
// go. Numbers are given in three steps:
//
//	hold    the chosen node becomes the holder in a new term, and each sequence begins above all
//	        windows of earlier holders that any node has seen
//	open    the holder writes how far it wants to go with a sequence, and may go there once a
//	        majority of the nodes shows that under its term
//	give    a reservation counts below what was granted, on a node that still is the holder
//
// A node that shows a newer term thereby refuses. Any two majorities meet, so a new holder sees
// each window from which a number was given.
//
// The package knows no SQL and no network. A [Store], the tables of the chosen node, carries out
// what it decides, and [Nodes] looks at the others. The simulation in seqproxy/test/simulation
// tries it on nodes that lag, crash, forget and come back.
//
// Start at [Group].
package limit
