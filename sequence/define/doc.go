// Package define is what a sequence is: what CREATE SEQUENCE says, its defaults, and what is
// refused. It is pure.
//
// Start from [Definition].
package define
