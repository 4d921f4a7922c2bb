// Package redact makes texts fit for a log: what may be a secret is not in them any more.
//
// Start at Append, which is all there is.
package redact
