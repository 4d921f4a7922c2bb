package plan

import "seqproxy/statement"

// Course is what a text is for, judged by its kind alone.
type Course uint8

// The courses.
const (
	Ordinary     Course = iota // one statement for the current shard
	Administer                 // it defines, changes or shows sequences, or is about the proxy
	ChangeSchema               // USE
	// CREATE DATABASE and its like, of a schema that may be on another shard
	OnSchema
	EndSession   // KILL
	ExplainRoute // EXPLAIN FORMAT=ROUTE
	ShowWarnings // SHOW WARNINGS
	Several      // several statements, or one that may hide others
	PrepareText  // PREPARE and its like
	MayLook      // it may be a program's question about sequences
)

// CourseOf returns what a text is for.
func CourseOf(st *statement.Statement) Course {
	if st.AboutSequences() {
		return Administer
	}
	switch st.Kind {
	case statement.Use:
		return ChangeSchema
	case statement.CreateDatabase, statement.AlterDatabase, statement.DropDatabase:
		return OnSchema
	case statement.Kill:
		if st.Refusal == "" { // otherwise it has a NEXTVAL
			return EndSession
		}
	case statement.ExplainRoute:
		return ExplainRoute
	case statement.ShowWarnings:
		return ShowWarnings
	case statement.Multi, statement.Other, statement.CreateStored:
		return Several
	case statement.Prepare, statement.Execute, statement.ExecuteImmediate, statement.Deallocate:
		return PrepareText
	case statement.Select, statement.Show:
		if st.Words&(statement.SystemSchema|statement.LooksForSequences) != 0 && len(st.Calls) == 0 && st.Refusal == "" {
			return MayLook
		}
	}
	return Ordinary
}
