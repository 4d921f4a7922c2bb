package sequence

import "seqproxy/sequence/define"

// What a sequence is, and why a definition is refused; see package define.
type (
	Definition = define.Definition
	Column     = define.Column
	KindError  = define.KindError
)

// Errors of a definition; see package define.
var (
	ErrBadOption = define.ErrBadOption
	ErrConflict  = define.ErrConflict
)
