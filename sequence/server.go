package sequence

import (
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"seqproxy/sequence/floor"
	"seqproxy/sequence/link"
	"seqproxy/sequence/member"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
)

// server is one sequence server.
type server = member.Server

// newServer does no I/O.
func newServer(opts Options, o ServerOptions, tuning *atomic.Pointer[Tuning], counters *stats.Counters, marks *floor.Marks) (*server, error) {
	t := opts.timing
	return serverWith(store.Options{
		Link: link.Options{
			Name: o.Addr, Nodes: o.nodes(), Login: o.loginInUse(), DialTimeout: o.DialTimeout, IOTimeout: o.IOTimeout, MaxConns: o.MaxConns,
			Relaxed: opts.Durability == DurabilityRelaxed,
			Timing:  &t.Timing, Log: opts.Logger.With(zap.String("server", o.Addr)), Retries: &counters.Retries,
		},
		Database: o.Database, Table: o.Table, MayCreate: func() bool { return tuning.Load().CreateTable },
		FrozenBackoff: t.frozenBackoff, EditSilence: t.editSilence, Beat: t.beat, Stale: t.stale,
	}, t, tuning, counters, marks)
}

// serverWith is newServer for one whose tables are known.
func serverWith(tables store.Options, t *timing, tuning *atomic.Pointer[Tuning], counters *stats.Counters, marks *floor.Marks) (*server, error) {
	return member.New(member.Options{
		Tables: tables, Marks: marks, Counters: counters, Group: t.Patience,
		Timing:              member.Timing{ShortestTry: t.shortestTry, Peer: t.peer, Follow: t.follow, Stale: t.stale, Alarm: t.alarm},
		Patience:            func() time.Duration { return tuning.Load().AllocateTimeout },
		OrderWithoutReplica: func() bool { return tuning.Load().OrderWithoutReplica },
	})
}
