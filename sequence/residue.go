package sequence

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
)

// wrongResidue is the finding about a row that another member's numbers would follow. The row of that one is named with it, if it can be asked.
func (v *server) wrongResidue(ctx context.Context, name string, id uint64, h share) error {
	rest, _ := h.rest(id)
	other := ""
	if o := v.peer(int((id%h.count + h.count - 1) % h.count)); o != nil && o != v {
		ctx, stop := context.WithTimeout(ctx, peerPatience)
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

// peerPatience bounds the look at another member for the text of an error.
const peerPatience = time.Second

// errResidueMended: the row stood where another member's numbers are, and does no more.
var errResidueMended = errors.New("the row stood at another server's numbers, and was raised")

// mendResidue raises a row that stands at another member's number to the next of its own, where nobody but seqproxy counts: then a proxy did that which had not heard of the
// plan, and died before it put the row back. What it reserved it gave to nobody. Where applications count too, they may add the wrong step, and what they gave
// is another's: that is the finding which is returned. Else it is errResidueMended, or a doubt if the row moved meanwhile.
func (v *server) mendResidue(ctx context.Context, name string, id uint64, h share) error {
	finding := v.wrongResidue(ctx, name, id, h)
	rest, ok := h.rest(id)
	direct, err := v.directWriters(ctx)
	if err != nil || direct || !ok || rest > v.seen.Load().max || h.plan == 0 {
		return errors.Join(finding, err)
	}
	result, err := v.pool().ExecContext(ctx, "UPDATE "+v.table.full+" SET `id` = ? WHERE `name` = ? AND `id` = ?"+v.table.underPlan(), rest, name, id, h.plan)
	if err != nil {
		return errors.Join(finding, err)
	}
	if n, err := result.RowsAffected(); err != nil || n != 1 {
		return v.doubt(fmt.Sprintf("sequence %q: its id was %d, which is another server's number", name, id), "try again: somebody has changed it meanwhile")
	}
	v.log.Warn("row at another server's number raised", logfield.Sequence(name), zap.Uint64("was", id), zap.Uint64("at", rest))
	return errResidueMended
}
