package session

import (
	"bytes"

	"seqproxy/protocol"
	"seqproxy/proxy/state"
	"seqproxy/statement"
)

// several handles a text of several statements, or of one that may hide others. A successful USE
// among them changes the schema. The shard stays in any case.
func (t *texts) several(sql []byte) error {
	if err := t.at.waitOutPause(); err != nil {
		return err
	}
	schema, err := t.planning.mayPassSeveral(sql)
	if err != nil {
		return err
	}
	if t.planning.stmt.Words&statement.SQLPrepare != 0 {
		if err := t.mayExecuteAny(); err != nil {
			return err
		}
		if t.planning.stmt.Words&statement.MayBringRows != 0 { // it has a PREPARE
			if err := t.preparesUnseen(); err != nil {
				return err
			}
		}
	}
	defaultStep := t.planning.defaultStepInside(sql)
	if err := t.delivery.single(sql); err != nil || t.at.cur == nil || t.at.cur.Answer.ErrCode != 0 {
		return err
	}
	if schema != nil {
		t.state.Schema = string(schema)
	}
	if !defaultStep {
		return nil
	}
	t.state.StepLost = true
	return t.at.keepStep(t.at.cur)
}

// mayPassSeveral returns an error if a text of several statements, or of one that may hide others,
// cannot go to the session's shard. It returns the schema of the last USE among them.
func (p *planning) mayPassSeveral(sql []byte) (used []byte, err error) {
	if used, err = p.schemasInside(sql); err != nil {
		return nil, err
	}
	return used, p.refuseInside(&p.stmt, p.state.Charset, "among several statements in one text")
}

// schemasInside refuses several statements in one text if one of them would leave the shard (USE),
// or belongs to another one (CREATE DATABASE and its like). It returns a copy of the schema of the
// last USE. If a part of the text was not understood, it also looks at each piece between
// semicolons, even if it may be in a string: a string hardly ever has just such a statement there.
func (p *planning) schemasInside(sql []byte) (used []byte, err error) {
	if schema := p.stmt.Schema; len(schema) > 0 && p.at.elsewhere(string(schema)) {
		return nil, errSchemaInside(schema)
	}
	for i := range p.stmt.Parts {
		part := &p.stmt.Parts[i]
		if len(part.Schema) > 0 && p.at.elsewhere(string(part.Schema)) {
			return nil, errSchemaInside(part.Schema)
		}
		if part.Kind == statement.Use {
			used = bytes.Clone(part.Schema)
		}
	}
	if p.stmt.Words&statement.Opaque == 0 || !p.at.routes.Many() && len(p.stmt.Schema) == 0 {
		return used, nil
	}
	var st statement.Statement
	for piece := range bytes.SplitSeq(sql, []byte(";")) {
		st.Analyze(piece, p.state.Mode)
		switch st.Kind {
		case statement.Use, statement.CreateDatabase, statement.AlterDatabase, statement.DropDatabase:
			if len(st.Schema) > 0 && p.at.elsewhere(string(st.Schema)) {
				return nil, errSchemaInside(st.Schema)
			}
		}
		if st.Kind == statement.Use {
			used = bytes.Clone(st.Schema)
		}
	}
	return used, nil
}

func errSchemaInside(schema []byte) error {
	return protocol.NotSupported("USE, CREATE, ALTER or DROP DATABASE of the schema %s, which is on another shard, "+
		"among several statements in one text: send it alone", schema)
}

// refuseInside refuses statements about sequences inside a text that goes to the server, where
// MariaDB would make a sequence of its own.
func (p *planning) refuseInside(st *statement.Statement, charset, where string) error {
	if st.Words&statement.SequenceStatement == 0 {
		return nil
	}
	if p.at.set.unknown == UnknownRelay && st.Proxy == nil {
		served := false
		for _, name := range st.Sequence.Names {
			name, err := p.InUTF8(name, charset)
			if err != nil {
				continue // these bytes are no name
			}
			is, err := p.Exists(name)
			if err != nil {
				return err
			}
			served = served || is
		}
		if !served {
			return nil
		}
	}
	return protocol.NotSupported("a statement about sequences %s is not supported: send it alone", where)
}

// defaultStepInside reports whether several statements in one text, if all succeed, set the
// session's step to its default: see keepStep.
func (p *planning) defaultStepInside(sql []byte) (lost bool) {
	if p.at.set.steps.Stride() <= 1 {
		return false
	}
	for i := range p.stmt.Parts {
		part := &p.stmt.Parts[i]
		if part.Kind != statement.Set {
			continue
		}
		for _, a := range p.stmt.Assignments[part.From:part.To] {
			if a.Target == statement.SessionVariable && string(a.Name) == state.StepVariable {
				lost = state.IsDefault(string(sql[a.Start:a.End]))
			}
		}
	}
	return lost
}
