// Package tlsfiles makes TLS settings from files. It makes them anew when the files change, since
// certificates are renewed every few weeks and a proxy runs for years.
//
// Start at Store, which reads and watches the files. Its Server makes the settings for connections
// from clients, and its Client those for connections to servers, in MySQL's modes. The package does
// not know MySQL's protocol.
package tlsfiles
