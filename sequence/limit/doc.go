// Package limit decides how far the numbers of a group of nodes may go, by what its nodes have
// recorded.
package limit
