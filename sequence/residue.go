package sequence

import (
	"context"
	"fmt"
	"strings"
)

// wrongResidue is the finding about a row that the numbers of another one of members would follow.
// The row of that one is named with it, if it can be asked.
func (v *server) wrongResidue(ctx context.Context, members []*server, name string, id uint64, h share) error {
	rest, _ := h.rest(id)
	other := ""
	if o := at(members, (id%h.count+h.count-1)%h.count); o != nil && o != v {
		ctx, stop := context.WithTimeout(ctx, v.timing.peer)
		defer stop()
		if found, err := o.look(ctx, name); err == nil {
			other = fmt.Sprintf(" (those are the numbers of %s, where it is %d)", o.name(), found.position())
		}
	}
	return &UnfitError{
		Server: v.name(), Table: v.table.full, own: true,
		Finding: fmt.Sprintf("sequence %q: its id is %d there, and %d modulo %d%s; this is server %d of %d, whose numbers are %d modulo %d: others would "+
			"give the same ones", name, id, id%h.count, h.count, other, h.position+1, h.count, h.residue(), h.count),
		Remedy: fmt.Sprintf("see that everybody adds %d, and UPDATE %s SET `id` = %d WHERE `name` = '%s' AND `id` = %d on %s", h.count, v.table.full, rest,
			strings.ReplaceAll(name, "'", "''"), id, v.name()),
	}
}

// at is the member at a position, nil if there is none.
func at(members []*server, position uint64) *server {
	if position < uint64(len(members)) {
		return members[position]
	}
	return nil
}
