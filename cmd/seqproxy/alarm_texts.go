package main

// alarmTexts are the alerts of deploy/prometheus/alerts.yml, for docs/alarms.md and "seqproxy help
// alarms".
var alarmTexts = []struct {
	alerts      []string
	meaning, do string
}{
	{
		[]string{"SeqproxyKeysRunOut", "SeqproxyNoKeys", "SeqproxyReservationErrors", "SeqproxySequenceServerDown"},
		"the sequence server cannot be used", "bring it back, nothing else. It is up? `seqproxy check -connect` prints what mends it. It is gone for good? See `seqproxy help lost` ([more](#keys-run-out))",
	},
	{
		[]string{"SeqproxyNodeDown"},
		"a shard's server is away: statements get error 1429 there, keys go on", "bring it back, or write the new `address` into each configuration and say `SEQPROXY RELOAD`. If it refuses everybody (1040, 1129), raise its `max_connections` or clear its host cache",
	},
	{
		[]string{"SeqproxyRewind"},
		"a row went back, by a restore or by hand", "say `CHECK SEQUENCE` for each, and `REPAIR SEQUENCE` where it answers Corrupt ([more](#a-row-went-back))",
	},
	{
		[]string{"SeqproxySuspectInsertIDs"},
		"a server may have given a key itself", "the log line `insert id not explained` has the statement. Compare the keys of its table on the shards ([more](sequences.md#keys-that-a-server-gives-itself))",
	},
	{
		[]string{"SeqproxySequenceNearItsEnd", "SeqproxySequenceEndsSoon"},
		"a sequence nears its end: `used_percent` and `runway` of `SHOW SEQUENCES`", "widen the column, then say `ALTER SEQUENCE name OWNED BY` that column again. Raise MAXVALUE if that is the end. Both hold within a second",
	},
	{
		[]string{"SeqproxyDown"},
		"the process is gone or hangs; other proxies go on", "start it; the end of its log says why",
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
		"the old configuration goes on", "`SEQPROXY RELOAD` says what is wrong with the new one",
	},
	{
		[]string{"SeqproxyOrderHomeDown"},
		"an ORDER sequence gives no number without its home", "bring that server back (in a group, its replicas), or [take it out](sequence-servers.md#a-member-is-gone-for-good)",
	},
	{
		[]string{"SeqproxyPlansDiffer"},
		"a proxy does not reach the members, or a change of them is unfinished; then applications that count get 1690", "say the same `SEQPROXY ADD` or `REMOVE` again, to any proxy",
	},
	{
		[]string{"SeqproxyStateFileFails"},
		"the disk of `state_dir` is full or fails: no numbers are reserved", "make room; numbers in memory go on",
	},
	{
		[]string{"SeqproxyUnknownCommits"},
		"connections broke in reservations", "look at the network. Numbers may be missing; none comes twice",
	},
}
