// Package await waits until a context ends, and no longer.
//
// Start from [Lock], which is held while a server is asked.
package await
