package main

import (
	"context"
	"time"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
)

// reportNumbered logs at the start which bound columns have AUTO_INCREMENT on more than one shard,
// each once. It repeats the check until all shards have answered.
func (r *running) reportNumbered(ctx context.Context) {
	logged := make(map[string]bool)
	complaint := ""
	for pause := firstSequencePause; ; pause = min(2*pause, lastSequencePause) {
		attempt, cancel := context.WithTimeout(ctx, sequencePatience)
		all, err := r.server.Numbered(attempt)
		cancel()
		if ctx.Err() != nil {
			return
		}
		for i := range all {
			n := &all[i]
			key := n.Name() + "\n" + n.Shard + "\n" + n.Remedy
			if logged[key] {
				continue
			}
			logged[key] = true
			r.log.Warn("bound column has AUTO_INCREMENT on several shards", zap.String("column", n.Name()), logfield.Sequence(n.Binding.Sequence), logfield.Shard(n.Shard),
				zap.String("remedy", n.Remedy))
		}
		if err == nil {
			return
		}
		if err.Error() != complaint {
			complaint = err.Error()
			r.log.Warn("bound columns not looked at", logfield.Err(err))
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}
