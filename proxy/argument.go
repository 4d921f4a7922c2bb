package proxy

import (
	"errors"

	"seqproxy/protocol"
	"seqproxy/proxy/params"
	"seqproxy/proxy/plan"
	"seqproxy/statement"
)

// fillCalls fills in what the parameters of an execution tell of the calls of a statement
// that is answered here.
func (x *executor) fillCalls(st *statement.Statement, p *prepared, payload []byte, f *plan.Facts) error {
	defer p.ForgetLong()
	e, err := p.cutExecution(payload, x.at.likeMariaDB(), x.at.login.Capabilities.Has(protocol.QueryAttributes))
	if errors.Is(err, params.ErrMalformed) {
		return malformed(x.at.likeMariaDB())
	}
	if err != nil {
		return err
	}
	values := p.Arguments(&e, 0)
	for i := range st.Calls {
		call := &st.Calls[i]
		from := params.ArgumentOf(call)
		if !from.Any() {
			continue
		}
		a := plan.Slot{Func: call.Func, Sequence: call.Name, Count: call.Count, Set: call.Set}
		if err := params.FillIn(&a, from, values, x.planning.nameOf); err != nil {
			return err
		}
		of := f.NameOf(i)
		of.Given, of.Named = a, from.Named()
	}
	return nil
}

// cutExecution takes an execution apart of which all values must be there.
func (p *prepared) cutExecution(payload []byte, likeMariaDB, attributes bool) (params.Execution, error) {
	e, err := p.Cut(payload, attributes)
	switch {
	case err != nil || p.Complete(&e):
	case likeMariaDB:
		err = params.ErrArguments
	default:
		p.Unbind(&e)
		err = params.ErrMalformed
	}
	return e, err
}
