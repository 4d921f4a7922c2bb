// Package mysqltest gives tests real private database servers, and the program under test.
//
// A package that uses it has
//
//	func TestMain(m *testing.M) { mysqltest.Main(m) }
//
// Start at [Shared], which is for tests to which any server will do, with a schema of their own
// from [Server.Schema]. [Start] is for a server that the test configures, kills or restarts. A
// start takes about 0.2 s.
//
// The server is the mariadbd or mysqld in PATH, or the one in the environment variable
// SEQPROXY_TEST_SERVER. If there is none, tests fail with the command that installs one: a skipped
// test proves nothing.
package mysqltest
