package proxy

import (
	"bytes"

	"seqproxy/sequence"
	"seqproxy/statement"
)

// mycatPrefix stands in front of a sequence's name in MyCat's NEXT VALUE FOR.
var mycatPrefix = []byte("MYCATSEQ_")

// serves says whether what a call asks of its sequence is answered here. The name in the
// call is then the sequence's own.
func (s *session) serves(call *statement.FuncCall) (bool, error) {
	if call.Form == statement.FormParam {
		return true, nil // no server knows that
	}
	if call.Form != statement.FormName && call.Form != statement.FormQualified {
		return s.set.Unknown != UnknownRelay, nil
	}
	doubtful := call.Spelling == statement.AsColumn || call.Spelling == statement.AsSelectValue
	relayed := doubtful || s.set.Unknown == UnknownRelay
	if call.Schema != nil && string(call.Schema) != s.set.Sequences.Schema() {
		// CREATE SEQUENCE db.s makes one that is called so.
		call.Name, call.Schema = append(append(bytes.Clone(call.Schema), '.'), call.Name...), nil
		known, err := s.knows(call.Name)
		if known || err != nil || relayed {
			return known, err
		}
		return false, &sequence.NameError{Name: string(call.Name), Err: sequence.ErrUnknown}
	}
	if call.Spelling == statement.AsValueFor {
		if err := s.withoutPrefix(call); err != nil {
			return false, err
		}
	}
	if !relayed {
		return true, nil // taking the number tells, or creates the sequence
	}
	return s.knows(call.Name)
}

// knows says whether there is a sequence of that name.
func (s *session) knows(name []byte) (bool, error) {
	known, err := s.set.Sequences.Known(&s.patience, name)
	return known, s.patience.over(err)
}

// withoutPrefix takes MyCat's prefix off a name, unless there is a sequence that has it in its
// name.
func (s *session) withoutPrefix(call *statement.FuncCall) error {
	n := len(mycatPrefix)
	if len(call.Name) <= n || !bytes.EqualFold(call.Name[:n], mycatPrefix) {
		return nil
	}
	known, err := s.knows(call.Name)
	if !known && err == nil {
		call.Name = call.Name[n:]
	}
	return err
}
