// Package mysqltest gives tests real private database servers, and the program under test.
//
// A package that uses it has
//
//	func TestMain(m *testing.M) { mysqltest.Main(m) }
//
// and then [Shared] for everything that only needs some server, with a schema
// of its own from [Server.Schema], and [Start] for a server that the test
// configures, kills or restarts. A start takes about 0.2 s.
//
// The server is the mariadbd or mysqld in PATH, or the one that the environment
// variable SEQPROXY_TEST_SERVER names. Where there is none, tests fail with the
// command that installs one: a test that is skipped proves nothing.
package mysqltest
