package main

// restoreSteps are for docs/operations.md and "seqproxy help restore".
var restoreSteps = []string{
	"Stop all proxies. If you restore to another server, keep the lost one off for good: a proxy that still names it gives the same keys.",
	"Restore the whole schema (a replica has it). Run `DELETE FROM seqproxy.sequence_proxy`. If a group was restored to one server, run `DELETE FROM seqproxy.sequence_holder`, too. On another server, make the [account](security.md#the-account-for-sequences), and write that server's address into the configuration of every proxy. If all servers in `seqproxy.sequence_plan` are lost, run `DELETE FROM seqproxy.sequence_plan` and `DELETE FROM seqproxy.sequence_member`: proxies go to the addresses there.",
	"Start one proxy that no application knows: with `-listen` at another port, as the system user of the service.",
	"Repeat, in their order, the statements about sequences since the dump. The log lines `audit` with `outcome` `done` have them, but not the texts of FORMAT and COMMENT, nor TIME ZONE, RESET and WIDEN. OWNED BY matters most: without it AUTO_INCREMENT gives the keys, and each shard the same.",
	"For each sequence run `REPAIR SEQUENCE name`. It raises the row above the keys of the column in its OWNED BY, on all shards of this proxy; if others have other shards, start one of each, and run it there, too. Without OWNED BY, with texts and with RESET it compares nothing, and says so: then run `ALTER SEQUENCE name RESTART WITH n`, with n above all keys. Of a [kind](kinds.md), n is a counter; with RESET, one of this period. UUID needs nothing, nor does SNOWFLAKE two minutes after its last key.",
	"Keys since the dump may be in no row: not yet inserted, or deleted. Raise the sequences above those, too, by RESTART. A [ticket table](coming-from.md#ticket-tables) that counts went back, too: `ALTER TABLE name AUTO_INCREMENT = n`, with n above all ids in use.",
	"Stop this proxy, and start all. Keep their `state_dir`: it has what each of them reserved itself.",
}

// onlyOneSteps are for docs/one-server.md and "seqproxy help lost".
var onlyOneSteps = []string{
	"Run `SHOW SEQUENCES` at the admin address of each proxy, and write down `name`, `next`, `cached` and `kind`. A proxy lists only sequences that it has used. Their options were only in the table.",
	"Make the [account](security.md#the-account-for-sequences) on another server, and write that server's address into the configuration of every proxy. Keep the lost server off for good: a proxy that still names it gives the same keys.",
	"Stop all proxies. Start one that no application knows: with `-listen` at another port, as the system user of the service. It makes the tables.",
	"Make each sequence, with the kind that it had: `CREATE SEQUENCE name OWNED BY table.column`. It begins above the greatest key of all shards of this proxy; if others have other shards, start one of each, and run `REPAIR SEQUENCE` there. If keys may be in use that are in no row, and always with FORMAT, whose texts are not compared, run `ALTER SEQUENCE name RESTART WITH n`, with n above all keys, of a [kind](kinds.md) above their counters, and well above the greatest `next` plus the sum of all `cached`: cached numbers may lie higher than `next`.",
	"Stop this proxy, and start all. One with a `state_dir` raises the rows above what it reserved itself.",
}

// lostMembers say how one of several sequence servers is taken out, for docs/members.md and
// "seqproxy help lost".
var lostMembers = []struct{ lost, run string }{
	{"a member", "make sure that it is off, then `REMOVE ... FORCE`"},
	{"a member that applications count on (`\"step\"`)", "make sure that it is off, then `... FORCE ABOVE n`"},
	{"a member that stays, while you add or remove another", "bring it back, or take it out first"},
}
