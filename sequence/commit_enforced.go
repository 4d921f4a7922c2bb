//go:build !seqproxy_fault_commit

package sequence

// believed is what may be given of a reservation that no answer came to: nothing, as it may not have been committed. Without that the tests must
// find a duplicate, or they prove nothing: build tag seqproxy_fault_commit.
func (v *server) believed(string, uint64) (grant, bool) { return grant{}, false }
