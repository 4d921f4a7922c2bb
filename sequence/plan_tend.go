package sequence

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
)

// A change whose coordinator died leaves rows frozen, and a member that went away in the middle of one may come back frozen. Should nobody make the change
// again, each proxy ends it after a while: one that is decided it finishes, any other it aborts.

// openStates are those in which a change has yet to be ended on a member, as SQL has them.
var openStates = "'" + strings.Join([]string{planProposed, planFrozen, planDecided, planAborting}, "', '") + "'"

// tendPlans runs until Close.
func (s *Sequences) tendPlans() {
	said := ""
	for s.sleep(jitter(s.timing.tend)) {
		uuid, err := s.tend(s.ctx)
		if err == nil {
			said = ""
			continue
		}
		if text := uuid + err.Error(); text != said && s.ctx.Err() == nil {
			said = text
			s.log.Warn("change of sequence servers left", zap.String("change", uuid), logfield.Err(err))
		}
	}
}

// tend ends a change that was left. It returns which one it found, "" if none.
func (s *Sequences) tend(ctx context.Context) (uuid string, err error) {
	if uuid = s.leftChange(ctx); uuid == "" {
		return "", nil
	}
	_, err = s.planned(ctx, func(r *planRun) error { return r.tend(uuid) })
	return uuid, err
}

// leftChange is the uuid of a change that is open on a server, and to which nothing happened for long on any that can be asked.
func (s *Sequences) leftChange(ctx context.Context) string {
	ctx, stop := context.WithTimeoutCause(ctx, s.timing.round, errPatience) // which Close may wait for
	defer stop()
	a := s.servers
	w := a.view.Load()
	if a.changing.take(ctx) != nil {
		return "" // the next look comes soon
	}
	known := slices.Clone(a.known) // one that leaves is no member any more
	a.changing.end()
	var mu sync.Mutex
	ages := make(map[string]time.Duration)
	a.each(ctx, known, func(ctx context.Context, _ int, v *server) error {
		rows, err := v.pool().QueryContext(ctx, "SELECT `uuid`, TIMESTAMPDIFF(MICROSECOND, `changed`, UTC_TIMESTAMP(6)) FROM "+v.table.plan+
			" WHERE `state` IN ("+openStates+") AND `number` >= ?", w.plan.Number)
		if err != nil {
			return err // most have no such table
		}
		defer func() { _ = rows.Close() }()
		mu.Lock()
		defer mu.Unlock()
		for rows.Next() {
			var uuid string
			var age int64
			if err := rows.Scan(&uuid, &age); err != nil {
				return err
			}
			least, ok := ages[uuid]
			// A time that is still to come is of before the server's clock went back: nobody would end the change until then.
			if silent := (time.Duration(age) * time.Microsecond).Abs(); !ok || silent < least {
				ages[uuid] = silent
			}
		}
		return rows.Err()
	})
	for uuid, age := range ages {
		if age >= s.timing.abandoned {
			return uuid
		}
	}
	return ""
}

// tend ends the change that was left, if it is the one that is open.
func (r *planRun) tend(uuid string) error {
	now, open, err := r.current()
	if err != nil {
		return err
	}
	if open == nil || open.UUID != uuid {
		r.plan = now
		return r.sweep()
	}
	r.s.log.Warn("change of sequence servers left", zap.String("change", open.UUID), zap.String("from", open.Coordinator), zap.Uint64("plan", open.Number), zap.String("state", open.State))
	if _, err := r.end(open); err != nil {
		return fmt.Errorf("end change %s, which was left: %w", uuid, err)
	}
	return nil
}
