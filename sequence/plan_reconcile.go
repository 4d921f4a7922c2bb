package sequence

import (
	"context"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
	"seqproxy/sequence/change"
)

// catchUp brings a member that is behind to the plan in force. from is a member that obeys it.
func (v *server) catchUp(ctx context.Context, from *server, p *Plan) (brought bool, err error) {
	return change.CatchUp(ctx, planStore{v.store}, planStore{from.store}, p)
}

// settle lets members go on that are back, and that a change left frozen which came to nothing
// meanwhile.
func (a *servers) settle(ctx context.Context) error {
	if err := a.changing.acquire(ctx); err != nil {
		return err
	}
	defer a.changing.release()
	a.letGo(ctx, a.probe(ctx, a.all))
	return nil
}

// letGo lets members go on that a change left frozen which came to nothing, as those that were
// asked tell. a.changing is held.
func (a *servers) letGo(ctx context.Context, probes []probe) {
	all, stores := make([]change.Report, len(probes)), make([]change.Store, len(probes))
	for i, p := range probes {
		all[i], stores[i] = p.Report, planStore{a.all[i].store}
	}
	for i, err := range change.LetGo(ctx, stores, all) {
		if err != nil {
			a.log.Warn("sequence server left frozen", zap.String("server", a.all[i].name()), logfield.Err(err))
		}
	}
}
