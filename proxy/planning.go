package proxy

import (
	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/plan"
	"seqproxy/sequence"
)

// factsFor begins what the planning of a text has to know.
func (s *session) factsFor(at plan.Moment) *plan.Facts {
	if s.planner == nil {
		s.planner = new(plan.Planner)
	}
	server, f := s.routes.Default() != nil, &s.planner.Facts
	*f = plan.Facts{
		At: at, Unknown: s.set.Unknown, Charset: s.state.Charset, Schema: s.set.Sequences.Schema(),
		Admin: s.login.Account.Admin, Limited: s.login.Account.Rights != nil,
		MariaDB: s.likeMariaDB(), Server: server, Attached: s.cur != nil,
		// MySQL warns of that flag at each statement, in its own words.
		Warns: server && s.login.Capabilities.Has(protocol.NoSchema),
		Fill:  s.fill, Names: f.Names[:0],
	}
	return f
}

// plan has the text in s.stmt planned, and fetches what that has to know.
func (s *session) plan(sql []byte) (*plan.Action, error) {
	for round := 0; ; round++ {
		v := s.planner.Text(&s.stmt, sql, &s.state)
		if again, err := s.meet(&v, round, sql); err != nil {
			return nil, err
		} else if !again {
			return &s.planner.Action, nil
		}
	}
}

// meet fetches what a plan asks for, in such a round. again says that it is to be made again; an
// error is why the client does not get what it wants.
func (s *session) meet(v *plan.Verdict, round int, sql []byte) (again bool, err error) {
	switch {
	case v.Kind == plan.Go:
		return false, nil
	case v.Kind == plan.Refuse:
		return false, s.refusal(&v.Refusal, sql)
	case round == plan.Rounds:
		return false, protocol.NotSupported("what this statement needs of sequences and columns is too much for one: send it in parts")
	}
	for i := range v.Needs {
		if err := s.learn(&s.planner.Facts, &v.Needs[i], sql); err != nil {
			return false, err
		}
	}
	return true, nil
}

// learn finds out what a plan of a text has to know.
func (s *session) learn(f *plan.Facts, n *plan.Need, sql []byte) (err error) {
	switch n.What {
	case plan.NeedText:
		text, is, err := s.askUTF8(n.Name, f.Charset)
		if f.Unknown == plan.UnknownRelay || f.Bound != nil {
			err = nil // what cannot be read is no name there
		}
		f.SetText(n.Name, text, plan.AnswerOf(is))
		return err
	case plan.NeedWhole:
		f.NameOf(n.At).Whole, err = answer(s.Knows(n.Name))
	case plan.NeedKnown:
		f.NameOf(n.At).Known, err = answer(s.Knows(n.Name))
	case plan.NeedRight:
		f.NameOf(n.At).Usable, err = answer(s.numbers.HasRight(n.Name))
	case plan.NeedSame:
		same, err := s.set.Sequences.Same(&s.numbers.Patience, n.Name, n.Other)
		f.NameOf(n.At).SameAsFirst = plan.AnswerOf(same)
		return s.numbers.Patience.Over(err)
	case plan.NeedDigits:
		f.Digits, err = answer(s.digitsInRows())
	case plan.NeedDatabase:
		return s.askSchema()
	case plan.NeedModes:
		_, err = s.insertModes(s.cur, s.stmt.Words)
	default:
		return s.learnColumns(f.TableOf(n.At), n.What, &s.stmt.Tables[n.At], sql)
	}
	return err
}

func answer(yes bool, err error) (plan.Answer, error) { return plan.AnswerOf(yes), err }

// refusal is the error for what the plan of a text refuses.
func (s *session) refusal(r *plan.Refusal, sql []byte) error {
	if r.ServerFirst {
		if err := s.tryPrepare(s.cur, sql); err != nil {
			return err
		}
	}
	switch r.Why {
	case plan.Unread:
		return s.unreadRows(sql)
	case plan.UnknownSequence:
		return &sequence.NameError{Name: string(r.Name), Err: sequence.ErrUnknown}
	case plan.NoRight:
		return keys.ErrNoRight(r.Name)
	case plan.NotAdmin:
		return s.RefuseSetval(&s.planner.Action.Slots[r.Call])
	}
	return protocol.NotSupported("%s", r.Text)
}

// Knows says whether there is a sequence of that name.
func (s *session) Knows(name []byte) (bool, error) {
	known, err := s.set.Sequences.Exists(&s.numbers.Patience, name)
	return known, s.numbers.Patience.Over(err)
}

// takesNumbers says whether a text has calls that are answered here.
func takesNumbers(a *plan.Action) bool {
	for i := range a.Slots {
		if a.Slots[i].Served() {
			return true
		}
	}
	return false
}

// refusedForm is the error for a form of NEXTVAL that cannot be given a number.
func refusedForm(form string) error {
	r := plan.RefusedForm(form)
	return protocol.NotSupported("%s", r.Text)
}
