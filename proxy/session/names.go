package session

import (
	"errors"

	"seqproxy/protocol"
	"seqproxy/proxy/plan"
	"seqproxy/sequence"
	"seqproxy/statement"
)

// facts asks the sequences and the servers for what is to be known of names, columns and variables,
// whichever text they are in.
type facts struct{ *ground }

// InUTF8 returns the name of a sequence, as it stands in a client's text, in the
// character set in which the sequence table is asked. The result is name itself where
// nothing has to be changed.
func (f *facts) InUTF8(name []byte, charset string) ([]byte, error) {
	converted, is := plan.UTF8(name, charset)
	if is == plan.Unasked {
		text, isText, err := f.askUTF8(name, charset)
		if isText || err != nil {
			return text, err
		}
	} else if is == plan.Yes {
		return converted, nil
	}
	return nil, protocol.NotSupported("the sequence name %q in this character set is not supported: SET NAMES utf8mb4, or use ASCII letters", name)
}

// nameOf is InUTF8 for a name in a parameter.
func (f *facts) nameOf(name []byte) ([]byte, error) { return f.InUTF8(name, f.state.Charset) }

// askUTF8 asks for a name in a character set that only a server knows; is says that it is one.
func (f *facts) askUTF8(name []byte, charset string) (text []byte, is bool, err error) {
	text, err = f.at.set.names.InUTF8(&f.numbers.Patience, charset, name)
	if err = f.numbers.Patience.Over(err); errors.Is(err, sequence.ErrNoText) {
		return nil, false, nil
	}
	return text, err == nil, err
}

func ascii(b []byte) bool { return plan.ASCII(b) }

// ofSequenceTable stands in ddl.Sequence.Schemas for a name that had the schema of the sequence
// table in front: it can be no server's.
const ofSequenceTable = -1

// resolveNames has every name of a statement about sequences be what is meant by it, in place: in
// UTF-8, without the schema of the sequence table, or as a list shows it.
func (p *planning) resolveNames(st *statement.Statement, charset string) error {
	ddl := st.Sequence
	if ddl == nil {
		return nil
	}
	for i := range ddl.Names {
		if n := ddl.Schemas[i]; n > 0 && string(ddl.Names[i][:n]) == p.at.set.sequenceSchema {
			ddl.Names[i], ddl.Schemas[i] = ddl.Names[i][n+1:], ofSequenceTable
		}
		if err := p.convert(&ddl.Names[i], charset); err != nil {
			return err
		}
	}
	for _, text := range [...]*[]byte{&ddl.Pattern, &ddl.Comment, &ddl.OwnerSchema, &ddl.OwnerTable, &ddl.OwnerColumn, &ddl.Kind.Format, &ddl.Kind.Zone, &ddl.KeyText} {
		if err := p.convert(text, charset); err != nil {
			return err
		}
	}
	if st.Proxy != nil {
		if err := p.convert(&st.Proxy.Shard, charset); err != nil {
			return err
		}
		return p.convert(&st.Proxy.Address, charset)
	}
	if st.Kind != statement.ShowCreateSequence || p.at.routes.Default() == nil {
		return nil
	}
	w := p.shown()
	listed, err := w.Listed(ddl, p.at.Attach)
	if listed != nil {
		ddl.Names[0], ddl.Schemas[0] = listed, 0
	}
	return err
}

// convert is InUTF8 in place.
func (f *facts) convert(name *[]byte, charset string) (err error) {
	if len(*name) > 0 {
		*name, err = f.InUTF8(*name, charset)
	}
	return err
}
