package member

import (
	"context"
	"fmt"
	"strings"

	"seqproxy/sequence/link"
	"seqproxy/sequence/segment"
)

// WrongResidue returns the finding about a row whose next numbers belong to another of the members.
// It includes that one's row, if that can be asked.
func (v *Server) WrongResidue(ctx context.Context, members []*Server, name string, id uint64, h segment.Share) error {
	rest, _ := h.Rest(id)
	other := ""
	if o := at(members, (id%h.Count+h.Count-1)%h.Count); o != nil && o != v {
		ctx, stop := context.WithTimeout(ctx, v.timing.Peer)
		defer stop()
		if found, err := o.Look(ctx, name); err == nil {
			other = fmt.Sprintf(" (those are the numbers of %s, where it is %d)", o.Name(), found.Position())
		}
	}
	return &link.UnfitError{
		Server: v.Name(), Table: v.Table.Sequence, OfSequence: true,
		Finding: fmt.Sprintf("sequence %q: its id is %d there, and %d modulo %d%s; this is server %d of %d, whose numbers are %d modulo %d: others would "+
			"give the same ones", name, id, id%h.Count, h.Count, other, h.Position+1, h.Count, h.Residue(), h.Count),
		Remedy: fmt.Sprintf("see that everybody adds %d, and UPDATE %s SET `id` = %d WHERE `name` = '%s' AND `id` = %d on %s", h.Count, v.Table.Sequence, rest,
			strings.ReplaceAll(name, "'", "''"), id, v.Name()),
	}
}

// at returns the member at a position, nil if there is none.
func at(members []*Server, position uint64) *Server {
	if position < uint64(len(members)) {
		return members[position]
	}
	return nil
}
