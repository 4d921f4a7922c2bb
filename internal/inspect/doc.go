// Package inspect finds out what an account sees of a MySQL or MariaDB server: its version,
// settings and clock, and what is wrong with them. It changes nothing there.
//
// Start at [Read], which asks a server. What it returns checks itself, and notes [Findings].
package inspect
