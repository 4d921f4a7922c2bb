// Package idiom knows texts by their shape that other products and their users have: what
// applications send to ticket servers, how programs look for sequences, what drivers ask when they
// connect, and s.NEXTVAL. What does not have the shape is none of them.
//
// Start at MatchTicket, whose result is a Ticket. ReadSequenceQuestion and SimpleSelect read whole
// texts as well; FindDotted serves the analysis of a statement.
package idiom
