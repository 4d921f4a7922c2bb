package proxy

import "seqproxy/statement"

// fillRows sends a text in which a NEXTVAL stands where the server would evaluate it once
// per row (statement.PlaceRow, PlaceSource, PlaceChange), so that one number spliced in
// its place would be that of many rows. The text is the one in s.stmt; what of its calls
// is to be replaced is in plan. No connection is attached yet, and no number taken.
func (s *session) fillRows(_ []byte, plan callPlan) error {
	return notFilled(&s.stmt, plan)
}

// notFilled refuses a text whose numbers are not one per call.
func notFilled(st *statement.Statement, plan callPlan) error {
	for i := range st.Calls {
		if !plan.served[i] {
			continue
		}
		switch st.Calls[i].Place {
		case statement.PlaceRow:
			return refusedForm("NEXTVAL in SELECT ... FROM")
		case statement.PlaceSource:
			return refusedForm("NEXTVAL in INSERT ... SELECT ... FROM")
		case statement.PlaceChange:
			return refusedForm("NEXTVAL in UPDATE or DELETE")
		}
	}
	return nil
}
