package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/sequence"
	"seqproxy/statement"
)

// engine is what is administered. *sequence.Sequences implements it.
type engine interface {
	Create(ctx context.Context, o sequence.CreateOptions) (sequence.Created, error)
	Drop(ctx context.Context, name []byte, ifExists bool) (bool, error)
	List(ctx context.Context) ([]sequence.Info, error)
}

// Sequences answers statements about sequences. It is safe for concurrent use.
type Sequences struct {
	engine engine
}

// NewSequences makes Sequences of an engine.
func NewSequences(e engine) *Sequences { return &Sequences{engine: e} }

// Execute runs an analysed statement about sequences. Errors are those of the engine and
// of by, or a *protocol.ServerError.
func (s *Sequences) Execute(ctx context.Context, st *statement.Statement, by Caller) (*protocol.Table, error) {
	if !by.Admin() && st.Kind != statement.ShowSequences {
		return nil, &protocol.ServerError{
			Code: mysql.ER_SPECIFIC_ACCESS_DENIED_ERROR, State: "42000",
			Message: "Access denied; you need to be one of the proxy's admin_users for this operation",
		}
	}
	ddl := &st.Sequence
	if err := refused(ddl); err != nil {
		return nil, err
	}
	switch st.Kind {
	case statement.ShowSequences:
		return s.show(ctx, ddl, by)
	case statement.CreateSequence:
		return s.create(ctx, ddl)
	case statement.DropSequence:
		return s.drop(ctx, ddl)
	}
	return nil, notSupported("this statement")
}

// refused is the error for a statement that must not be executed.
func refused(ddl *statement.SequenceDDL) error {
	switch {
	case ddl.Problem != "":
		return &protocol.ServerError{
			Code: mysql.ER_PARSE_ERROR, State: "42000",
			Message: fmt.Sprintf("You have an error in your SQL syntax near '%s'", ddl.Problem),
		}
	case ddl.Unsupported != "":
		return notSupported(ddl.Unsupported)
	case ddl.Twice != "":
		return &protocol.ServerError{
			Code: mysql.ER_DUP_ARGUMENT, State: "HY000",
			Message: fmt.Sprintf("Option '%s' used twice in statement", ddl.Twice),
		}
	}
	return nil
}

func notSupported(what string) error {
	return &protocol.ServerError{
		Code: mysql.ER_NOT_SUPPORTED_YET, State: "42000",
		Message: fmt.Sprintf("seqproxy: %s is not supported for sequences", what),
	}
}

func (s *Sequences) create(ctx context.Context, ddl *statement.SequenceDDL) (*protocol.Table, error) {
	switch {
	case ddl.OrReplace:
		return nil, notSupported("OR REPLACE")
	case ddl.Increment.Given || ddl.Min.Given || ddl.Max.Given || ddl.TypeMax != 0 || ddl.Cycle == statement.Yes ||
		ddl.HasComment || ddl.HasOwner || ddl.JSONSafe == statement.Yes:
		return nil, notSupported("an option other than START WITH and CACHE")
	case ddl.Start.Given && ddl.Start.Value == 0 || ddl.Cache.Given && ddl.Cache.Value == 0:
		return nil, fmt.Errorf("sequence %q: %w: START WITH and CACHE are at least 1", ddl.Names[0], sequence.ErrBadOption)
	}
	made, err := s.engine.Create(ctx, sequence.CreateOptions{
		Name: string(ddl.Names[0]), IfNotExists: ddl.IfExists, Start: ddl.Start.Value, Cache: ddl.Cache.Value,
	})
	if err != nil {
		return nil, err
	}
	// A warning count would send clients to SHOW WARNINGS, where a server has nothing about it.
	var info string
	switch {
	case made.Existed:
		info = "sequence exists already and stays as it is"
	case made.Raised:
		info = fmt.Sprintf("sequence begins at %d: a dropped sequence of that name gave the numbers below", made.First)
	}
	return &protocol.Table{OK: protocol.OK{Info: info}}, nil
}

// drop drops the sequences that exist. The others are named in one error, as with
// tables.
func (s *Sequences) drop(ctx context.Context, ddl *statement.SequenceDDL) (*protocol.Table, error) {
	var unknown []string
	for _, name := range ddl.Names {
		_, err := s.engine.Drop(ctx, name, ddl.IfExists)
		switch {
		case errors.Is(err, sequence.ErrUnknown):
			unknown = append(unknown, string(name))
		case err != nil:
			return nil, err
		}
	}
	if len(unknown) > 0 {
		return nil, &sequence.NameError{Name: strings.Join(unknown, ","), Err: sequence.ErrUnknown}
	}
	return &protocol.Table{}, nil
}

const (
	charsetUTF8MB4 = 45 // utf8mb4_general_ci
	charsetBinary  = 63

	// nameLength is that of the table's name column, in bytes of utf8mb4.
	nameLength = 50 * 4
	// numberLength is that of a BIGINT UNSIGNED.
	numberLength = 20
)

func number(name string, flags uint16) protocol.Column {
	return protocol.Column{
		Name: name, Charset: charsetBinary, Length: numberLength, Type: mysql.MYSQL_TYPE_LONGLONG,
		Flags: flags | mysql.UNSIGNED_FLAG | mysql.BINARY_FLAG,
	}
}

var showColumns = []protocol.Column{
	{Name: "name", Charset: charsetUTF8MB4, Length: nameLength, Type: mysql.MYSQL_TYPE_VAR_STRING, Flags: mysql.NOT_NULL_FLAG},
	number("next", 0),
	number("cached", mysql.NOT_NULL_FLAG),
	number("cache", mysql.NOT_NULL_FLAG),
}

// Columns returns the columns of the answer to a statement that Execute runs; none
// for one that is answered with OK.
func (s *Sequences) Columns(st *statement.Statement) []protocol.Column {
	if st.Kind == statement.ShowSequences {
		return showColumns
	}
	return nil
}

// show lists the sequences: the next number that this proxy will give, how many it
// holds in memory, and how many it reserves at once. A sequence that has run out
// has no next number.
func (s *Sequences) show(ctx context.Context, ddl *statement.SequenceDDL, by Caller) (*protocol.Table, error) {
	all, err := s.engine.List(ctx)
	if err != nil {
		return nil, err
	}
	t := &protocol.Table{Columns: showColumns}
	for _, i := range all {
		if ddl.HasPattern && !like(string(ddl.Pattern), i.Name) {
			continue
		}
		if may, err := by.MayUse(ctx, []byte(i.Name)); err != nil {
			return nil, err
		} else if !may {
			continue
		}
		var next any
		if i.Next != 0 {
			next = i.Next
		}
		t.Rows = append(t.Rows, []any{i.Name, next, i.Cached, i.Cache})
	}
	return t, nil
}
