package members

import (
	"fmt"

	"seqproxy/sequence/define"
)

// GroupError: a server that is a group would be one of several. It is a define.ErrSeveral.
type GroupError struct{ Name string }

func (e *GroupError) Error() string {
	return fmt.Sprintf("sequence server %s is a group of nodes, and those that divide the numbers are single servers: %s", e.Name, GroupWayOut)
}

// Unwrap returns define.ErrSeveral.
func (e *GroupError) Unwrap() error { return define.ErrSeveral }

// GroupWayOut is what else can be done.
const GroupWayOut = "keep the one group, to which nodes can be added; or have several servers of one address each"
