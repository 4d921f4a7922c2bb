package lex_test

import (
	"context"
	"testing"

	"seqproxy/statement/lex"
	"seqproxy/test/mysqltest"
)

func TestMain(m *testing.M) { mysqltest.Main(m) }

// TestServersReadTheBytesOfCharacterSetsAsWeDo asks a server how it classifies the upper bytes of
// each single-byte character set.
func TestServersReadTheBytesOfCharacterSetsAsWeDo(t *testing.T) {
	server := mysqltest.Shared(t)
	ctx := context.Background()
	c, err := server.DB(t, "").Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	takes := func(query string) (value string, ok bool) {
		return value, c.QueryRowContext(ctx, query).Scan(&value) == nil
	}
	for name, classes := range lex.UpperBytes() {
		if _, err := c.ExecContext(ctx, "SET NAMES "+name); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i, want := range []byte(classes) {
			b := string([]byte{byte(0x80 + i)})
			got := byte('.')
			if _, space := takes("SELECT" + b + "1"); space {
				got = 's'
			} else if _, word := takes("SELECT 1 a" + b + "c"); word {
				got = 'w'
			} else if value, comment := takes("SELECT 1 --" + b + "1"); comment && value == "1" {
				got = 'c'
			}
			if got != want && want != '?' {
				t.Errorf("%s: byte %#x: the server says %c, and we %c", name, b, got, want)
			}
		}
	}
}
