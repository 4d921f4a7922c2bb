package sequence

import "seqproxy/sequence/store"

// What is said of the proxies of a sequence server; see package store.
type (
	// Proxy is one that may hold numbers in memory.
	Proxy = store.Proxy
	// RegisteredError: a sequence is not restarted, as other proxies may hold numbers of it.
	RegisteredError = store.RegisteredError
)
