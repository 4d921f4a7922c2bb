// Package mysqld runs private MariaDB or MySQL servers on loopback. Each has a free port and a data
// directory of its own. It ends when it is no longer needed, however this process ends. The
// playground and the tests use it.
//
// Start at [Find], which looks for an installed server, and [Start], which initialises a missing
// data directory and starts the server.
//
// The servers are for experiments and tests: root has no password, and they use little memory. The
// settings that protect data are the server's own (it flushes a commit). So killing one shows what
// happens when a real one is killed.
package mysqld
