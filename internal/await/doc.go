// Package await has waits that end with a context.
//
// Start at [Lock], which is kept while a server is asked.
package await
