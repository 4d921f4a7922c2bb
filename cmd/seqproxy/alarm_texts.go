package main

// alarmTexts are the alerts of deploy/prometheus/alerts.yml, for docs/alarms.md and "seqproxy help alarms".
var alarmTexts = []struct {
	alerts      []string
	meaning, do string
}{
	{
		[]string{"SeqproxyKeysRunOut", "SeqproxyNoKeys", "SeqproxyReservationErrors", "SeqproxySequenceServerDown"},
		"the sequence server cannot be used", "bring it back, nothing else; if it is there, the column `error` says what mends it; if it is gone for good, `seqproxy help lost` ([more](#keys-run-out))",
	},
	{
		[]string{"SeqproxyNodeDown"},
		"a shard's server is away: error 1429 there, keys go on", "bring it back, or write the new `address` into each configuration and `SEQPROXY RELOAD`; it refuses everybody (1040, 1129): raise its `max_connections`, clear its host cache",
	},
	{
		[]string{"SeqproxyRewind"},
		"a row went back: a restore, or somebody changed it", "`CHECK SEQUENCE` each, `REPAIR SEQUENCE` where it says Corrupt ([more](#a-row-went-back))",
	},
	{
		[]string{"SeqproxySuspectInsertIDs"},
		"a server may have given a key itself", "the log line `insert id not explained` has the statement: compare the keys of its table on the shards ([more](sequences.md#keys-that-a-server-gives-itself))",
	},
	{
		[]string{"SeqproxySequenceNearItsEnd", "SeqproxySequenceEndsSoon"},
		"`used_percent` and `runway` of `SHOW SEQUENCES`", "widen the column first, then `ALTER SEQUENCE name MAXVALUE n`; it holds within a second",
	},
	{
		[]string{"SeqproxyDown"},
		"the process is gone or hangs; clients of other proxies notice nothing", "start it; the end of its log says why",
	},
	{
		[]string{"SeqproxyNotReady"},
		"most often neither the default shard nor a sequence server is reached", "`/readyz` says why",
	},
	{
		[]string{"SeqproxyConnectionsNearLimit", "SeqproxyClientsRefused"},
		"a limit is too low, or an application leaks connections", "`SHOW SEQPROXY USERS`, `SHOW SEQPROXY SESSIONS`; raise `max_connections`, `max_user_connections` or `max_logins`",
	},
	{
		[]string{"SeqproxyAuthFailures"},
		"somebody guesses passwords, or a program has a wrong one", "the log has user and address: `login refused`",
	},
	{
		[]string{"SeqproxyReloadFailed"},
		"the old configuration goes on", "`SEQPROXY RELOAD` says what is wrong with the new one",
	},
	{
		[]string{"SeqproxyOrderHomeDown"},
		"an ORDER sequence gives no number without its home", "bring that server back (in a group, replicas), or [take it out](sequence-servers.md#a-member-is-gone-for-good)",
	},
	{
		[]string{"SeqproxyPlansDiffer"},
		"a proxy does not reach the members, or a change of them is unfinished, in which applications that count get 1690", "say the same `SEQPROXY ADD` or `REMOVE` again, to any proxy",
	},
	{
		[]string{"SeqproxyStateFileFails"},
		"the disk of `state_dir` is full or fails: no numbers are reserved", "make room; numbers in memory go on",
	},
	{
		[]string{"SeqproxyUnknownCommits"},
		"connections broke in reservations", "look at the network; numbers may be missing, none comes twice",
	},
}
