package main

import "testing"

const sequenceServer = `
[[sequence.server]]
address = "127.0.0.1:3306"
user = "seq"
`

func TestCheckSaysWhatAConfigurationMeans(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"keys only": {
			"[[user]]\nname = 'app'\n" + sequenceServer,
			"FILE is right: listens on 127.0.0.1:4306, one user, no shard, so keys only, sequence table seqproxy.sequence on 127.0.0.1:3306\n",
		},
		"one shard": {
			"[[user]]\nname = 'app'\n" + sequenceServer + "[[shard]]\nname = 's'\n[[shard.node]]\naddress = 'h:1'\n",
			"FILE is right: listens on 127.0.0.1:4306, one user, one shard, s, sequence table seqproxy.sequence on 127.0.0.1:3306\n",
		},
		"the server's accounts": {
			"unknown_user = 'backend'\n" + sequenceServer + "[[shard]]\nname = 's'\n[[shard.node]]\naddress = 'h:1'\n",
			"FILE is right: listens on 127.0.0.1:4306, the users of the server, one shard, s, sequence table seqproxy.sequence on 127.0.0.1:3306\n",
		},
		"the server's accounts, too": {
			"unknown_user = 'backend'\n[[user]]\nname = 'app'\n" + sequenceServer + "[[shard]]\nname = 's'\n[[shard.node]]\naddress = 'h:1'\n",
			"FILE is right: listens on 127.0.0.1:4306, one user and those of the server, one shard, s, sequence table seqproxy.sequence on 127.0.0.1:3306\n",
		},
		"two shards, with a warning": {
			"listen = ':4306'\ndefault_shard = 'b'\n[[user]]\nname = 'x'\n[[user]]\nname = 'y'\npassword = 'p'\n" + sequenceServer +
				"[[shard]]\nname = 'a'\n[[shard.node]]\naddress = 'h:1'\n[[shard]]\nname = 'b'\n[[shard.node]]\naddress = 'h:2'\n",
			"warning: FILE: user[\"x\"]: has no password, and listen \":4306\" lets other machines in\n" +
				"FILE is right: listens on :4306, 2 users, 2 shards, by default b, sequence table seqproxy.sequence on 127.0.0.1:3306\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := write(t, "seqproxy.toml", test.text)
			runs(t, 0, inFile(file, test.want), "", "check", "--config", file)
		})
	}
}

func TestCheckSaysAllThatIsWrongWithFileKeyAndAllowedValues(t *testing.T) {
	file := write(t, "seqproxy.toml", `
listen = "4306"
unknown_sequence = "ignore"
max_conections = 5
admin_users = ["dba"]
[log]
level = "loud"
[[user]]
name = "app"
password_file = "missing"
[[shard]]
name = "a"
`)
	runs(t, 1, "", inFile(file, `seqproxy: this configuration cannot be used:
FILE: unknown key "max_conections"; did you mean "max_connections"?
FILE: user["app"].password_file: open DIR/missing: no such file or directory
FILE: listen: must be host:port such as "127.0.0.1:4306", is "4306"
FILE: unknown_sequence: must be "error", "create" or "relay", is "ignore"
FILE: log.level: must be "debug", "info", "warn" or "error", is "loud"
FILE: admin_users: must name users that are there as [[user]], "dba" is not
FILE: sequence.server: one [[sequence.server]] is required: it holds the table that keys are reserved from
FILE: shard["a"].node: one [[shard.node]] is required
`), "check", "-config", file)
}

func TestARunWithAWrongConfigurationSaysTheSameAsCheck(t *testing.T) {
	file := write(t, "seqproxy.toml", "listen = ")
	want := inFile(file, "seqproxy: this configuration cannot be used:\nFILE: line 1: unexpected EOF; expected value\n")
	runs(t, 1, "", want, "check", "-config", file)
	runs(t, 1, "", want, "-config", file)
}
