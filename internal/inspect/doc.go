// Package inspect says what an account sees of a MySQL or MariaDB server: its version, settings, clock and the account's own rights, and what
// is wrong with them. It changes nothing there.
package inspect
