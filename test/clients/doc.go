// Package clients has only tests. They run real drivers, command-line clients and tools directly
// against a private server, and through the program seqproxy in front of it, and compare the
// results.
//
// Start at [TestThroughTheProxyAsDirectly], which goes through all clients.
//
// testdata has a script for each driver. It is started as
//
//	SCRIPT HOST PORT USER PASSWORD SCHEMA
//
// with LOGIN (password, tls, compress ...), BIG (size of the big value in bytes), INFILE, SESSION,
// CA and SEQUENCE in its environment. A script prints its transcript: lines of JSON, {"step":
// "insert id", "value": ["1", "2", "3"]}. Every scalar is a string or null. SEQUENCE is empty on a
// direct connection, since a server has no NEXTVAL('photos').
//
// Other programs insert rows without knowing their keys: drivers, which report generated keys
// (testdata/keys), and object-relational mappers, which also make the tables. They use
// AUTO_INCREMENT, NEXTVAL, and keys that the proxy fills in. In each step, the keys that a program
// assumes must be the rows' keys.
//
// Each client also connects to a proxy without a server: where only keys are served, and at the
// admin address. Its statements there must be in proxy/testdata/connecting.txt, which the proxy's
// tests use.
//
// A test whose client is missing is skipped and named. With CI=true or SEQPROXY_TEST_CLIENTS=all it
// fails. `make deps-clients` installs everything.
package clients
