package main

import (
	"strings"
	"testing"
)

func TestDecodePrintsCounters(t *testing.T) {
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"bit_reversed", "4611686018427387904", "3"}, 0, "4611686018427387904 counter 1\n3 counter 6917529027641081856\n"},
		{[]string{"ROTATE 1 DIGITS 6", "100002"}, 0, "100002 counter 21\n"},
		{[]string{"shard bits 5", "864691128455135233"}, 0, "864691128455135233 counter 1 shard 3\n"},
		{[]string{"bit_reversed json_safe", "9007199254740992"}, 2, "is no key of kind BIT_REVERSED JSON_SAFE, which are from 1 to 9007199254740991"},
		{[]string{"uuid", "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"}, 0, "017f22e2-79b0-7cc3-98c4-dc0c0c07398f time 2022-02-22 19:22:22.000\n"},
		{[]string{"FORMAT 'PO-{yyyyMMdd}-{n:6}'", "PO-20261125-000042"}, 0, "PO-20261125-000042 counter 42 time 20261125\n"},
		{[]string{"FORMAT 'PO-{ddMMyyyy}-{n:6}' RESET MONTHLY", "PO-25112026-000042"}, 0, "PO-25112026-000042 counter 42 time 25112026 period 202611\n"},
		{[]string{"format '{yyyyMMdd}{n:6}' reset daily", "20261125000042"}, 0, "20261125000042 counter 42 period 20261125\n"},
		{[]string{"format '{yyyyMMdd}{n:6}'", "20261125000042"}, 0, "20261125000042 counter 42\n"},
		{[]string{"FORMAT 'PO-{yyyyMMdd}-{n:6}'", "PO-1"}, 2, `"PO-1" is no key of kind FORMAT 'PO-{yyyyMMdd}-{n:6}'`},
		{[]string{"shard bits 99", "5"}, 2, "SHARD BITS 99: want 1 to 15"},
		{[]string{"slotted", "5"}, 2, "is no kind of key"},
		{[]string{"snowflake", "5"}, 2, "5 is no key of kind SNOWFLAKE"},
		{[]string{"snowflake epoch '2010-11-04T01:42:54.657Z'", "1541815603606036487"}, 0, "1541815603606036487 time 2022-06-28 16:07:40.105 worker 378 counter 7\n"},
		{[]string{"bit_reversed", "x"}, 2, `"x" is no key`},
		{[]string{"bit_reversed"}, 2, "decode 'KIND' KEY"},
	} {
		p := begin(t, append([]string{"decode"}, c.args...)...)
		p.end(c.status)
		got := p.stdout()
		if c.status != 0 {
			got = p.stderr()
		}
		if got != c.want && (c.status == 0 || !strings.Contains(got, c.want)) {
			t.Errorf("%s: got %q, want %q", c.args, got, c.want)
		}
	}
}
