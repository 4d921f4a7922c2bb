package main

// alarmTexts are the alerts of deploy/prometheus/alerts.yml, for docs/alarms.md and "seqproxy help
// alarms".
var alarmTexts = []struct {
	alerts      []string
	meaning, do string
}{
	{
		[]string{"SeqproxyKeysRunOut", "SeqproxyNoKeys", "SeqproxyReservationErrors", "SeqproxySequenceServerDown"},
		"the sequence server cannot be used", "bring it back, and nothing else. Is it up? `seqproxy check -config FILE -connect` prints what to do. Is it gone for good? See `seqproxy help lost` ([more](#keys-run-out))",
	},
	{
		[]string{"SeqproxyNodeDown"},
		"a shard's server is away: statements for it get error 1429, keys are still given", "bring it back. Or make the old server read-only, write the new `address` into each configuration, and run `SEQPROXY RELOAD`. Is it the only sequence server, too? Then follow `seqproxy help restore`. If it refuses everybody (1040, 1129), raise its `max_connections` or clear its host cache",
	},
	{
		[]string{"SeqproxyRewind"},
		"a row went back, by a restore or by hand", "at once run `REPAIR SEQUENCE` for each, at one proxy of every set of shards, also where `CHECK` says OK ([more](#a-row-went-back))",
	},
	{
		[]string{"SeqproxyRowGone"},
		"somebody deleted the row of a sequence, as by TRUNCATE: clients get error 4091", "the log line `sequence row gone`, or with several servers `sequence row missing on a server`, names it and what puts the row back. Without that line it was dropped while it was in use",
	},
	{
		[]string{"SeqproxySuspectInsertIDs"},
		"a server may have given a key itself", "the log line `insert id not explained` has the statement. Compare the keys of its table on the shards ([more](sequences.md#keys-that-a-server-gives-itself))",
	},
	{
		[]string{"SeqproxySequenceNearItsEnd", "SeqproxySequenceEndsSoon"},
		"a sequence nears its end: `used_percent` and `runway` of `SHOW SEQUENCES`", "widen the column, then run `ALTER SEQUENCE name OWNED BY` that column again. If MAXVALUE is the end, raise it, and run `REPAIR SEQUENCE`. Both take effect within a second. A kind whose digits are used up needs a new sequence with more digits",
	},
	{
		[]string{"SeqproxyDown"},
		"the process is gone or hangs; other proxies work", "start it; the end of its log says why",
	},
	{
		[]string{"SeqproxyNotReady"},
		"most often the proxy reaches neither the default shard nor a sequence server", "`/readyz` says why",
	},
	{
		[]string{"SeqproxyConnectionsNearLimit", "SeqproxyClientsRefused"},
		"a limit is too low, or an application leaks connections", "look at `SHOW SEQPROXY USERS` and `SHOW SEQPROXY SESSIONS`. Raise `max_connections`, `max_user_connections` or `max_logins`",
	},
	{
		[]string{"SeqproxyAuthFailures"},
		"somebody guesses passwords, or a program has a wrong one", "find user and address in the log: `login refused`",
	},
	{
		[]string{"SeqproxyReloadFailed"},
		"the old configuration stays in force", "`SEQPROXY RELOAD` says what is wrong with the new one",
	},
	{
		[]string{"SeqproxyOrderHomeDown"},
		"an ORDER sequence gives no number without its home", "bring that server back (in a group, its replicas), or [take it out](members.md#a-member-is-gone-for-good)",
	},
	{
		[]string{"SeqproxyClockOff"},
		"the clock of the proxy's machine or of the sequence server is wrong: from a minute on, keys of `SNOWFLAKE` and `RESET` may be refused", "set the one that is wrong, as by NTP. No key comes twice",
	},
	{
		[]string{"SeqproxyPlansDiffer"},
		"a proxy does not reach the members, or a change of them is unfinished; then applications that count get 1690", "repeat the same `SEQPROXY ADD` or `REMOVE` on any proxy",
	},
	{
		[]string{"SeqproxyStateFileFails"},
		"the disk of `state_dir` is full or fails: no numbers are reserved", "make room; numbers in memory are still given",
	},
	{
		[]string{"SeqproxyUnknownCommits"},
		"connections broke during reservations", "look at the network. Numbers may be missing; none comes twice",
	},
}
