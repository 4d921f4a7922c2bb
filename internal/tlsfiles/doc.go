// Package tlsfiles makes TLS settings of files, and makes them anew when the files
// change: certificates are renewed every few weeks, and a proxy runs for years.
//
// Start at Store, which reads the files and watches them. Its Server gives what
// clients of the proxy meet, its Client what connections to servers are secured
// with, in MySQL's modes. The package knows no MySQL protocol.
package tlsfiles
