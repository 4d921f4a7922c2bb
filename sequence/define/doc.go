// Package define is what a sequence is: the content of CREATE SEQUENCE, its defaults, and what is
// refused. It is pure.
//
// Start at [Definition].
package define
