package proxy

import (
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy/plan"
	"seqproxy/sequence"
	"seqproxy/statement"
)

// factsFor begins what the planning of a text has to know.
func (s *session) factsFor(at plan.Moment) *plan.Facts {
	if s.planner == nil {
		s.planner = new(plan.Planner)
	}
	server, f := s.routes.Default() != nil, &s.planner.Facts
	*f = plan.Facts{
		At: at, Unknown: s.set.Unknown, Charset: s.state.Charset, Schema: s.set.Sequences.Schema(),
		Admin: s.user.Admin, Limited: s.user.rights != nil,
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
		switch {
		case v.Kind == plan.Go:
			return &s.planner.Action, nil
		case v.Kind == plan.Refuse:
			return nil, s.refusal(&v.Refusal)
		case round == plan.Rounds:
			return nil, notSupported("this combination of NEXTVALs is not supported: send them in several statements")
		}
		for i := range v.Needs {
			if err := s.learn(&s.planner.Facts, &v.Needs[i]); err != nil {
				return nil, err
			}
		}
	}
}

// learn finds out what a plan has to know.
func (s *session) learn(f *plan.Facts, n *plan.Need) (err error) {
	switch n.What {
	case plan.NeedText:
		of := f.NameOf(n.Call)
		of.Text, of.HasText, err = s.learnText(n.Name, f.Charset)
	case plan.NeedSchema:
		of := f.NameOf(n.Call)
		of.Schema, of.HasSchema, err = s.learnText(n.Name, f.Charset)
	case plan.NeedWhole:
		f.NameOf(n.Call).Whole, err = answer(s.knows(n.Name))
	case plan.NeedKnown:
		f.NameOf(n.Call).Known, err = answer(s.knows(n.Name))
	case plan.NeedRight:
		f.NameOf(n.Call).Usable, err = answer(s.hasRight(n.Name))
	case plan.NeedSame:
		same, err := s.set.Sequences.Same(&s.patience, n.Name, n.Other)
		f.NameOf(n.Call).SameAsFirst = plan.AnswerOf(same)
		return s.patience.over(err)
	case plan.NeedDigits:
		f.Digits, err = answer(s.digitsInRows())
	}
	return err
}

func answer(yes bool, err error) (plan.Answer, error) { return plan.AnswerOf(yes), err }

// learnText asks for a name in UTF-8. Where it is none the answer is No.
func (s *session) learnText(name []byte, charset string) ([]byte, plan.Answer, error) {
	text, is, err := s.askUTF8(name, charset)
	return text, plan.AnswerOf(is), err
}

// refusal is the error for what a plan refuses.
func (s *session) refusal(r *plan.Refusal) error {
	switch r.Why {
	case plan.UnknownSequence:
		return &sequence.NameError{Name: string(r.Name), Err: sequence.ErrUnknown}
	case plan.NoRight:
		return errNoRight(r.Name)
	case plan.NotAdmin:
		return s.refuseSetval(&s.planner.Action.Slots[r.Call])
	}
	return notSupported("%s", r.Text)
}

// errNoRight is the error for a sequence that the user may not use.
func errNoRight(name []byte) error {
	return sqlError(mysql.ER_SPECIFIC_ACCESS_DENIED_ERROR, "42000",
		"Access denied; you need the right to use the sequence '%s' for this operation", strings.ToValidUTF8(limit(string(name), maxNamed), "?"))
}

// knows says whether there is a sequence of that name.
func (s *session) knows(name []byte) (bool, error) {
	known, err := s.set.Sequences.Known(&s.patience, name)
	return known, s.patience.over(err)
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
	return notSupported("%s", r.Text)
}

// clientID says whether calls for the connection's id mean the one that the client knows.
func (s *session) clientID(st *statement.Statement) bool { return plan.ClientID(st, &s.state) }
