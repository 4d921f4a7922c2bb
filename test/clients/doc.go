// Package clients holds no code, only tests: real drivers, command-line clients
// and tools, each run against a private server and then through the program
// seqproxy in front of it, and what they tell is compared.
//
// The scripts stand in testdata, one for each driver, and are started as
//
//	SCRIPT HOST PORT USER PASSWORD SCHEMA
//
// with LOGIN (password, tls, compress ...), BIG (size of the big value in bytes),
// INFILE, SESSION, CA and SEQUENCE in their environment. A script prints its
// transcript: lines of JSON, {"step": "insert id", "value": ["1", "2", "3"]}, in
// which every scalar is a string or null. SEQUENCE is empty on a direct
// connection, since a server knows no NEXTVAL('photos').
//
// Beside them stand programs that insert rows without knowing their keys: drivers, which
// tell generated keys (testdata/keys), and object-relational mappers, which also make the
// tables. They are run with AUTO_INCREMENT, with NEXTVAL and with keys that the proxy
// fills in, and in each step what a program takes the rows for must be what they are.
//
// Each client also connects where no server is behind the proxy: where only keys are
// served, and at the admin address. What it asks then has to be in the list
// proxy/testdata/connecting.txt, by which the proxy's tests go.
//
// What the machine lacks is skipped and named, unless the environment says that
// nothing may be skipped (CI=true or SEQPROXY_TEST_CLIENTS=all). `make deps-clients`
// installs everything.
package clients
