package main

import (
	"strings"
	"testing"

	"seqproxy/conf"
)

func TestGeneratedConfigurationOfSeqproxyIsValid(t *testing.T) {
	c, err := conf.Parse("seqproxy.toml", []byte(seqproxyConfig("127.0.0.1:4306", "127.0.0.1:3306", benchAccount.schema)))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	if w := c.Warnings(); len(w) > 0 {
		t.Errorf("got warnings %v", w)
	}
}

func TestHAProxyHasTheThreadsThatItIsGiven(t *testing.T) {
	pinned, free := haproxyConfig("127.0.0.1:1", "127.0.0.1:2", 1), haproxyConfig("127.0.0.1:1", "127.0.0.1:2", 0)
	if !strings.Contains(pinned, "  nbthread 1\n") || strings.Contains(free, "nbthread") {
		t.Errorf("pinned:\n%s\nnot pinned:\n%s", pinned, free)
	}
	if !strings.Contains(free, "bind 127.0.0.1:1\n") || !strings.Contains(free, "server mysql 127.0.0.1:2\n") {
		t.Errorf("got\n%s", free)
	}
}
