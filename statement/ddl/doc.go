// Package ddl has the grammar of statements about sequences as things, CREATE SEQUENCE and its
// like, and of those to the proxy itself, SEQPROXY and SHOW SEQPROXY.
//
// Start at Reader. It fills a Sequence, and makes a ProxyCommand. Which of its methods a text is
// for says package statement.
package ddl
