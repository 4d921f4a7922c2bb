package change

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Met is a server, and its report, in which there is nothing if it did not answer.
type Met struct {
	Store
	Report
	Sequences []Sequence // as it has them before a change
	Member    Member     // as the plan has it, for who goes by that
	Err       error      // why it did not answer
}

// Reconcile does two things. It brings servers to the plan in force, or decided, where they are
// behind it. It lets those go on that are frozen for a change which came to nothing. It knows that
// by the reports of the servers, or because it is the change void, which may be nil.
//
// A failure on one server does not keep it from the others. failed has the errors, by position. did
// is called after each step. It may be nil.
func Reconcile(ctx context.Context, met []Met, now, void *Plan, did func(step string, m *Met)) (failed []error) {
	if did == nil {
		did = func(string, *Met) {}
	}
	failed = make([]error, len(met))
	// First those that stay: what is made there by hand until they obey the others hear of.
	var known []Knowledge
	var unknown error
	for _, stays := range []bool{true, false} {
		caughtUp := false
		for i := range met {
			m := &met[i]
			if !m.behind(now) || now.stays(m.ID) != stays {
				continue
			}
			if known == nil {
				known, unknown = knowledge(ctx, met, now)
			}
			if failed[i] = obey(ctx, m, now, known, unknown); failed[i] == nil {
				did(InForce, m)
				caughtUp = true
			}
		}
		if caughtUp {
			known = nil
		}
	}
	newest, _ := Latest(met)
	for i := range met {
		m := &met[i]
		for j := range m.Plans {
			p := &m.Plans[j]
			isVoid := void != nil && p.UUID == void.UUID
			// Another plan was made since, unless who asks has missed one.
			isAbandoned := p.State == Proposed && !p.follows(now) && newest.Number <= now.Number
			isNever := isVoid || p.Vetoed(met)
			if !p.Open() || p.UUID == now.UUID || !isNever && !isAbandoned {
				continue
			}
			if why := m.LetGo(ctx, p, !isNever); why != nil {
				failed[i] = errors.Join(failed[i], why)
				continue
			}
			did(Aborted, m)
		}
	}
	return failed
}

// behind reports whether a server has yet to obey the plan in force, or to leave by it. Servers
// join the first plan by themselves.
func (m *Met) behind(now *Plan) bool {
	return m.Plan < now.Number && len(now.Previous) > 0 && (HasMember(now.Members, m.ID) || HasMember(now.Previous, m.ID))
}

// knowledge reads what servers know that one takes over which is brought to a plan. Those that do
// not answer are passed over: what one knows others know, too.
func knowledge(ctx context.Context, met []Met, p *Plan) (all []Knowledge, failed error) {
	for _, m := range met {
		var known Knowledge
		err := m.Err
		if err == nil {
			known, err = m.Knowledge(ctx, p)
		}
		if err == nil {
			all = append(all, known)
		}
		failed = errors.Join(failed, err)
	}
	return all, failed
}

// obey brings a server that is behind to a plan, by what others know. unknown is why some did not
// tell.
func obey(ctx context.Context, m *Met, p *Plan, all []Knowledge, unknown error) error {
	if has := slices.IndexFunc(all, func(k Knowledge) bool { return k.Complete }); has >= 0 {
		return m.Obey(ctx, p, all[has].Floors, all)
	}
	return errors.Join(fmt.Errorf("no member that has the floors of plan %d can be reached", p.Number), unknown)
}
