package main

// errorEntry is the text about an error in docs/errors.md and "seqproxy help errors".
type errorEntry struct {
	code        int
	state       string
	cause, cure string
}

// errorTexts are the proxy's own errors by number, in the sections of the page.
var errorTexts = []struct {
	section string
	errors  []errorEntry
}{
	{"Keys", []errorEntry{
		{4091, "42S02", "no sequence of that name", "`CREATE SEQUENCE name OWNED BY table.column`, above the keys that are there; or `unknown_sequence = \"create\"`, from 1 on"},
		{4084, "HY000", "the sequence is at its end", "widen the column, then `OWNED BY` again, or `MAXVALUE` ([how](alarms.md)); for a kind, make a new sequence"},
		{4085, "HY000", "options contradict each other, or do not fit the column `id`", "the text names them"},
		{1050, "42S01", "CREATE SEQUENCE: the name is taken", "IF NOT EXISTS, or another name"},
		{1105, "HY000", "no number is available, or as the text says", "see [Without a number](#without-a-number)"},
		{1210, "HY000", "an impossible value, such as RESTART below a given number", "the text says what is allowed"},
		{1225, "HY000", "an option is given twice", "remove one"},
		{1221, "HY000", "OR REPLACE and IF NOT EXISTS together", "remove one"},
		{1054, "42S22", "OWNED BY, CHECK or REPAIR: the column does not exist", "name another column"},
		{1064, "42000", "the text is no SQL, or an unknown `SEQPROXY` statement", "`SHOW SEQPROXY HELP` lists them"},
		{1227, "42000", "the user is not in `admin_users`, or may not use this sequence", "`admin_users`; `sequences` of the `[[user]]`"},
		{1235, "42000", "the proxy does not support this", "the text names the way out"},
		{1615, "08S01", "since this INSERT was prepared, a column of its table was bound, or is no more; the session ends", "connect again, as pools do"},
		{1615, "HY000", "the same in a transaction, or with a [pin](compatibility.md#with-several-shards) but `opaque`: the session goes on", "prepare it again"},
	}},
	{"Servers and shutdown", []errorEntry{
		{1429, "HY000", "the shard's server cannot be reached, or the shard is paused", "bring it back ([more](alarms.md)); `SEQPROXY RESUME`"},
		{1429, "08S01", "a reload in a pause gave the shard another server, and the session cannot move there; it ends", "connect again, as pools do; the text says why"},
		{1053, "08S01", "the proxy stops; the statement was not executed", "connect again and repeat it"},
		{1159, "08S01", "a large statement came too slowly while others waited for memory", "raise `statement_memory`"},
		{1041, "HY000", "a large statement, or a text of many, waited for memory for `pause_timeout`, or found none", "repeat it; raise `statement_memory`, or end long statements"},
		{4031, "HY000", "a session without a server was idle for `wait_timeout`", "connect again, as with MySQL"},
	}},
	{"Logins", []errorEntry{
		{1045, "28000", "wrong user or password, or [a login that does not count](security.md#accounts-that-the-server-checks)", "the log says why: `login refused`"},
		{1040, "08004", "`max_connections` or `max_logins` is reached", "raise it, and the servers' limit"},
		{1043, "08S01", "the bytes are no login, or a PROXY header is missing", "check `proxy_protocol_from` and the balancer"},
		{1130, "HY000", "a PROXY header from an unlisted address", "list it in `proxy_protocol_from`"},
		{1129, "HY000", "too many failed logins from the address", "wait; find the program ([more](security.md#guessed-passwords))"},
		{1203, "42000", "the user's connections have reached `max_user_connections`", "raise it, or close some"},
		{1226, "42000", "the user's connections have reached its own `max_connections`", "raise it in `[[user]]`"},
		{1251, "08004", "the client does not know the account's login plugin", "a newer client, or another plugin"},
		{3159, "HY000", "the client uses no TLS, and `tls.required` is set", "connect with TLS"},
		{3923, "HY000", "an unknown zstd level", "another level"},
		{1231, "42000", "a character set that the client cannot use", "another one"},
	}},
	{"Commands", []errorEntry{
		{1047, "08S01", "an unknown command, or one that only servers use", "a newer client, or none"},
		{1065, "42000", "an empty text", "send a statement"},
		{1094, "HY000", "KILL of an unknown id, or of one at another proxy", "use that proxy"},
		{1095, "HY000", "KILL of another user's session", "use an account in `admin_users`"},
		{1153, "08S01", "an execution with NEXTVAL is larger than `max_statement`, or names its parameters in more than 64 KiB", "raise it, up to 16 MiB, or send fewer rows at once; name no parameters"},
		{1156, "08S01", "packets out of order", "a broken client"},
		{1835, "HY000", "a packet that cannot be read", "a broken client"},
		{1243, "HY000", "the statement was not prepared on this connection", "prepare it"},
		{1421, "HY000", "a fetch without a cursor", "execute it with a cursor"},
		{1295, "HY000", "the statement cannot be executed in bulk", "execute it row by row"},
		{1461, "42000", "too many prepared statements", "close some"},
	}},
}

// wordTexts are different errors with the same number, in the sections of the page.
var wordTexts = []struct {
	section string
	errors  []wordEntry
}{
	{"Without a number", []wordEntry{
		{"its sequence server is unavailable", "it cannot be reached, and memory is empty", "bring it back ([more](alarms.md))"},
		{"the home of this ORDER sequence is unavailable", "the only member that gives them is away", "bring it back, or take it out"},
		{"while the proxy cannot write its state file", "the disk of `state_dir` is full or fails", "make room"},
		{"is unfit to give numbers", "the server or table could repeat numbers", "run the statement in the log"},
		{"the clock of this machine is", "it is over a minute from the sequence server's: no keys with a time or a date", "set the one that is wrong"},
		{"behind the time of keys that are in use already", "the clock went back, or was ahead before", "wait so long; if it is right now, restart the proxy, with another `worker_id`"},
		{"workers are in use", "more proxies than [`SNOWFLAKE`](kinds.md#snowflake) has workers, or many were killed", "wait, or a shorter OUTAGE_COVER"},
		{"which is the worker_id of this proxy", "another proxy has that [worker](kinds.md#snowflake), or had it and was killed", "what the text says"},
		{"is not known yet", "since the start the sequence server has not answered", "bring it back; set `state_dir`"},
		{"one column of a table can own one", "OWNED BY for a column of a table that owns another sequence", "what the text says"},
		{"because other proxies are registered and may hold numbers of it", "RESTART ... FORCE while other proxies run", "stop them first"},
		{"its row was deleted; keys up to", "somebody deleted the row; this is error 4091", "FLUSH SEQUENCES everywhere, then the CREATE SEQUENCE in the text; to be rid of it, with OWNED BY NONE, then DROP"},
		{"was deleted, so it is not created by itself", "somebody deleted the row; NEXTVAL and IF NOT EXISTS do not make it again", "FLUSH SEQUENCES on every proxy, then the CREATE SEQUENCE in the text"},
		{"was deleted, and it was OWNED BY", "the same, and CREATE SEQUENCE does not say what becomes of the column", "what the text says"},
		{"was deleted, and other proxies may have numbers of it", "the same, and CREATE SEQUENCE does not say where it goes on", "what the text says"},
		{"is paused since", "`SEQPROXY PAUSE`, error 1429", "`SEQPROXY RESUME`"},
	}},
	{"About the sequence servers", []wordEntry{
		{"it is read only", "it is a replica, or somebody made it read-only", "configure the primary"},
		{"none of its nodes can be written to", "the group's fail-over is not finished", "promote one"},
		{"it can be written to and replicates from", "a promoted node still replicates", "stop its replication"},
		{"can both be written to and are no cluster", "an old primary came back, or a replica was made writable", "`SET GLOBAL read_only = 1` on the one that is not the primary"},
		{"it can be written to and is no copy of the other nodes", "there are two primaries", "make one of them a `read_only` replica"},
		{"ORDER needs other nodes to see that", "too few replicas follow", "attach one, or `order_requires_replica = false`"},
		{"innodb_flush_log_at_trx_commit is 0", "a crash would undo reservations", "the SET in the text"},
		{"it does not exist, or the user may not see it", "tables or rights are missing", "the GRANT, or `seqproxy schema`"},
		{"it is gone, or the user may not see it", "somebody dropped the sequence table, or one beside it", "[restore it](operations.md#backup-and-restore)"},
		{"this proxy cannot enter itself there", "the account may not write `sequence_proxy`", "the GRANT in the text"},
		{"its engine is", "the table is not InnoDB", "the ALTER in the text"},
		{"its kind cannot be read", "a newer proxy made this sequence, or somebody edited `kind`", "update this proxy; or correct `kind` in `sequence_options`"},
		{"it belongs to a group, whose numbers", "one node of a group is configured alone", "configure all nodes of the [group](sequence-servers.md#groups)"},
		{"holds the sequences of a group", "the same", "the same; if the node is left alone for good, empty `sequence_holder`"},
		{"several are configured that do not divide the numbers yet", "there is no plan for these members", "configure one, and ADD the others"},
		{"it is a group, and one of several that divide the numbers", "a member has `nodes`", "use one group, or several single servers"},
		{"another sequence server than the plan's", "another server has that address now", "remove the old one, then add it"},
		{"are the same sequence server, or one is a copy of the other", "one server has two names, or is a clone", "use one name, or the DELETE in the text"},
		{"belongs to another set of sequence servers", "it is a member elsewhere", "remove it there first, and drop its tables as the text says"},
		{"applications may count in the table", "direct writers may run", "[stop them](members.md#changing-their-number)"},
		{"may be decided, which", "a member that may have accepted the change is away", "bring it back, or restore it from any backup; then repeat the statement"},
		{"nobody knows which numbers", "that member is missing from the change", "bring it back, or [FORCE ABOVE](members.md#a-member-is-gone-for-good)"},
		{"need a single sequence server", "CYCLE, or an INCREMENT that does not divide a block", "NOCYCLE; another INCREMENT"},
		{"in progress, since", "another change is under way", "wait, or repeat the statement"},
		{"consecutive numbers do not fit in a block of", "the statement needs more than a block", "fewer rows, or larger blocks"},
	}},
}

// wordEntry is the text about an error with words of its own.
type wordEntry struct{ words, cause, cure string }
