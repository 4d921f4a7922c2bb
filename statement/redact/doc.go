// Package redact makes texts fit for a log: it removes everything that may be a secret.
//
// Start at Append, its only function.
package redact
