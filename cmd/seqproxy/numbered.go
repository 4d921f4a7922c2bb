package main

import (
	"context"
	"errors"
	"strings"

	"go.uber.org/zap"

	"seqproxy/internal/await"
	"seqproxy/internal/logfield"
	"seqproxy/sequence"
)

// reportNumbered logs at the start and after each reload which bound columns have AUTO_INCREMENT on
// more than one shard, each once.
func (r *running) reportNumbered(ctx context.Context) {
	logged := make(map[string]bool)
	for {
		r.lookForNumbered(ctx, logged)
		select {
		case <-ctx.Done():
			return
		case <-r.reloaded:
		}
	}
}

// lookForNumbered repeats the check until all shards have answered.
func (r *running) lookForNumbered(ctx context.Context, logged map[string]bool) {
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
		if text := withoutWait(err); text != complaint {
			complaint = text
			r.log.Warn("bound columns not looked at", logfield.Err(err))
		}
		if !await.Pause(ctx, pause) {
			return
		}
	}
}

// withoutWait returns the text of an error without the waiting time, which is another each time.
func withoutWait(err error) string {
	away := new(sequence.UnavailableError)
	if !errors.As(err, &away) {
		return err.Error()
	}
	same := *away
	same.Waited = 0
	return strings.Replace(err.Error(), away.Error(), same.Error(), 1)
}
