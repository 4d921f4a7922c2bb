package sequence

import (
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"seqproxy/sequence/floor"
	"seqproxy/sequence/link"
	"seqproxy/sequence/member"
	"seqproxy/sequence/members"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
)

// server is one sequence server.
type server = member.Server

// newServer does no I/O.
func (s *Sequences) newServer(o ServerOptions, counters *stats.Counters, marks *floor.Marks) (*server, error) {
	opts, tuning, t := &s.opts, &s.tuning, s.timing
	return serverWith(store.Options{
		Link: link.Options{
			Name: o.Addr, Nodes: o.nodes(), Login: o.loginInUse(), DialTimeout: o.DialTimeout, IOTimeout: o.IOTimeout, MaxConns: o.MaxConns,
			Relaxed: opts.Durability == DurabilityRelaxed,
			Timing:  &t.Timing, Log: opts.Logger.With(zap.String("server", o.Addr)), Retries: &counters.Retries,
		},
		Database: o.Database, Table: o.Table, MayCreate: func() bool { return tuning.Load().CreateTable }, LookOnly: opts.LookOnly,
		FrozenBackoff: t.frozenBackoff, EditSilence: t.editSilence, Beat: t.beat, Stale: t.stale, Cover: s.ticksOfCover,
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

// newMembers are those of the configuration, and those of a plan when it is known.
func (s *Sequences) newMembers() (*members.Members, error) {
	opts, marks := s.opts, floor.NewMarks()
	configured := make([]*server, len(opts.Servers))
	for i, o := range opts.Servers {
		v, err := s.newMember(o, marks)
		if err != nil {
			return nil, err
		}
		configured[i] = v
	}
	return members.New(members.Options{
		Servers: configured,
		At: func(address string) (*server, error) {
			o, err := opts.serverAt(address)
			if err != nil {
				return nil, err
			}
			return s.newMember(o, marks)
		},
		Interleave: opts.Interleave, Marks: marks, Lack: s.timing.lack, Log: s.log,
	}), nil
}

// newMember is a server that numbers may come from.
func (s *Sequences) newMember(o ServerOptions, marks *floor.Marks) (*server, error) {
	v, err := s.newServer(o, &s.counters, marks)
	if err == nil && s.opts.WorkerID != nil {
		v.Registry.Host += workerInHost(*s.opts.WorkerID)
	}
	return v, err
}
