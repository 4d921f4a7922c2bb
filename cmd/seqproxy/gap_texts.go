package main

// gapTexts are the reasons why keys jump, for docs/operations.md and "seqproxy help jumped".
var gapTexts = []struct{ cause, far, see string }{
	{"a proxy or its machine was killed", "two segments at most", "no `stopped` in its log"},
	{"one of several proxies was stopped or flushed", "what it had cached", "`stopped` in its log, with `passed_over`"},
	{"two proxies give numbers in turn", "up to `order_skew`, back and forth", "`SHOW SEQUENCES`"},
	{"a fail-over; a node of a cluster came or went", "to a ceiling, 64 segments or more", "`sequences held by another node`"},
	{"a lost member was taken out", "2^36", "`change of sequence servers done`"},
	{"several members divide the numbers", "blocks of 10,000", "`SHOW SEQPROXY SEQUENCE SERVERS`"},
	{"RESTART, SETVAL, REPAIR; a sequence made again", "to that number; above the old ones", "`audit` in the log"},
	{"an INSERT brought a large key of its own", "to that key", "`MAX(id)`, and who wrote it"},
	{"INSERT ... SELECT, UPDATE with NEXTVAL", "1000 for each statement", "metric `numbers_given_total`"},
	{"a ROLLBACK, a failed statement, IGNORE", "one for each row", "as with AUTO_INCREMENT"},
}
