// Package mysqld runs private MariaDB or MySQL servers: on loopback, on a free
// port, with a data directory of their own, and gone when they are no longer
// wanted, however this process ends. The playground and the tests stand on it.
//
// Start at [Find], which looks for an installed server, and [Start], which
// initialises a data directory where there is none and starts the server.
//
// The servers are for trying and testing: root has no password, and memory is
// kept small. Whatever protects data is left as the server has it (a commit is
// flushed), so that killing one shows what killing a real one would.
package mysqld
