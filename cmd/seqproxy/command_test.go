package main

import (
	"regexp"
	"strings"
	"testing"

	"seqproxy/conf"
)

// runs runs the program to its end and checks its exit status and output.
func runs(t *testing.T, status int, stdout, stderr string, args ...string) {
	t.Helper()
	p := begin(t, args...)
	p.end(status)
	if got := p.stdout(); got != stdout {
		t.Errorf("stdout: got\n%swant\n%s", got, stdout)
	}
	if got := p.stderr(); got != stderr {
		t.Errorf("stderr: got\n%swant\n%s", got, stderr)
	}
}

func TestWrongCommandLinesAreToldInOneLine(t *testing.T) {
	empty := write(t, "empty", "")
	for _, test := range []struct {
		args   string
		status int
		want   string
	}{
		{"-nope", 2, `flag provided but not defined: -nope; "seqproxy -h" lists the flags`},
		{"--config", 2, `flag needs an argument: -config; "seqproxy -h" lists the flags`},
		{"check --nope", 2, `flag provided but not defined: -nope; "seqproxy check -h" lists the flags`},
		{"playground -nope", 2, `flag provided but not defined: -nope; "seqproxy playground -h" lists the flags`},
		{"start", 2, `"start" is no command; the commands are check, decode, example, health, import, playground, schema, version and help; a configuration is run by -config FILE`},
		{"-backend h:1 -user u x", 2, `"x" is too much: what is given to seqproxy itself are flags`},
		{"check f", 2, "check needs -config FILE, as in seqproxy check -config f"},
		{"health -timeout 0s", 2, "-timeout must be above 0, is 0s"},
		{"health -http h:99999", 2, `-http must be HOST:PORT such as 127.0.0.1:4308, is "h:99999"`},
		{"health -http 127.0.0.1:1", 1, "no proxy answers at 127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused; see that it runs, and that its http.listen is there, or name that with -http HOST:PORT"},
		{"version 1", 2, `"1" is too much: seqproxy version takes no further argument`},
		{"example 1", 2, `"1" is too much: seqproxy example takes no further argument`},
		{"check", 2, "check needs -config FILE"},
		{"health x", 2, `"x" is too much: seqproxy health takes no further argument`},
		{"health -http 4308", 2, `-http must be HOST:PORT such as 127.0.0.1:4308, is "4308"`},
		{"check -config f x", 2, `"x" is too much: seqproxy check -config FILE takes no further argument`},
		{"-listen 127.0.0.1:0", 2, `give -config FILE, or -backend HOST:PORT and -user NAME; "seqproxy help" shows all`},
		{"-config f -backend h:1", 2, "-config and -backend exclude each other: with -config the servers stand in the file"},
		{"-config f -user u", 2, "-user and -password-file go with -backend; with -config the users stand in the file"},
		{"-backend h:1", 2, "-backend needs -user NAME: the account that clients log in with"},
		{"-backend h -user u", 2, `-backend must be host:port or unix:/path/to/socket, is "h"`},
		{"-backend 127.0.0.1:4306 -user u", 2, `-backend must not be the proxy's own listen address, is "127.0.0.1:4306"`},
		{"-backend h:1 -user u -listen 1", 2, `-listen must be host:port such as "127.0.0.1:4306", is "1"`},
		{"-backend h:1 -user u -password-file /none/p", 1, "-password-file: open /none/p: no such file or directory"},
		{"-backend h:1 -user u -password-file " + empty, 1, "-password-file: " + empty + " is empty"},
		{"-config /none/f", 1, "read config: open /none/f: no such file or directory"},
	} {
		t.Run(test.args, func(t *testing.T) {
			runs(t, test.status, "", "seqproxy: "+test.want+"\n", strings.Fields(test.args)...)
		})
	}
}

func TestHelpAndVersionAndExample(t *testing.T) {
	runs(t, 2, "", "seqproxy: nothing to do\n\n"+usage)
	runs(t, 0, strings.TrimLeft(conf.Example, "\n"), "", "example")
	for _, args := range []string{"help", "-h", "--help"} {
		p := begin(t, args)
		p.end(0)
		for _, want := range []string{usage, "-password-file FILE\n", "-backend HOST:PORT\n"} {
			if !strings.Contains(p.stdout(), want) {
				t.Errorf("%s: stdout does not have %q", args, want)
			}
		}
	}
	for args, want := range map[string]string{
		"playground -h": "-dir DIR\n", "check --help": "-config FILE\n", "-listen 127.0.0.1:0 -h": "-user NAME\n",
		"help check":  "say what is wrong with a configuration, and with the servers that it names\n\nFlags of seqproxy check:\n  -config FILE\n",
		"help import": "make sequences of the counters of", "version -h": "seqproxy version has no flags.\n", "example -h": "seqproxy example has no flags.\n",
	} {
		p := begin(t, strings.Fields(args)...)
		p.end(0)
		if got := p.stdout(); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q in it", args, got, want)
		}
	}
	for _, args := range []string{"version", "-version", "--version"} {
		p := begin(t, args)
		p.end(0)
		if want := regexp.MustCompile(`^seqproxy devel \(commit unknown, go1\.\S+ \w+/\w+\)\n$`); !want.MatchString(p.stdout()) {
			t.Errorf("%s: got %q, want it to match %v", args, p.stdout(), want)
		}
	}
}
