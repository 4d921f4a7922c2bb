//go:build seqproxy_fault_commit

package sequence

// believed takes it on purpose for committed that was sent; never for use.
func (v *server) believed(name string, n uint64) (grant, bool) {
	mark := v.marks.of(name)
	return grant{seg: NewSegment(mark+1, mark+n), max: v.seen.Load().max, rule: v.rules.of(name)}, true
}
