// Package inspect finds out what an account sees of a MySQL or MariaDB server: its version,
// settings and clock, and what is wrong with them. It changes nothing there.
package inspect
