// Package idiom recognizes, by their shape, texts that come from other products and their users:
// statements to ticket servers, questions of programs that look for sequences, questions of drivers
// that connect, and s.NEXTVAL. A text of another shape is none of these.
//
// Start at MatchTicket, whose result is a Ticket. ReadSequenceQuestion and SimpleSelect also read
// whole texts. FindDotted helps to analyse a statement.
package idiom
