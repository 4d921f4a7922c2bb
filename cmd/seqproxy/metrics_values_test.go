package main

import (
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"seqproxy/test/mysqltest"
)

// series are the values in /metrics by name and labels, without "seqproxy_".
type series map[string]float64

// family returns the series of some metrics, by name.
func (all series) family(names ...string) series {
	some := maps.Clone(all)
	maps.DeleteFunc(some, func(line string, _ float64) bool {
		name, _, _ := strings.Cut(line, "{")
		return !slices.Contains(names, name)
	})
	return some
}

// of returns the series of one sequence.
func (all series) of(sequence string) series {
	some := maps.Clone(all)
	maps.DeleteFunc(some, func(line string, _ float64) bool {
		return !strings.Contains(line, `{sequence="`+sequence+`"`) && !strings.Contains(line, `,sequence="`+sequence+`"`)
	})
	return some
}

// since returns the series that have changed, with the difference.
func (all series) since(before series) series {
	moved := make(series)
	for line, value := range all {
		if d := value - before[line]; d != 0 {
			moved[line] = d
		}
	}
	for line, value := range before {
		if _, there := all[line]; !there && value != 0 {
			moved[line] = -value
		}
	}
	return moved
}

func (all series) sum() (n float64) {
	for _, value := range all {
		n += value
	}
	return n
}

// metered is a proxy whose metrics are read.
type metered struct {
	t       *testing.T
	clients string // its address for clients
	http    string
}

// read reads /metrics.
func (m *metered) read() series {
	m.t.Helper()
	status, text := get(m.t, m.http, "/metrics")
	if status != 200 {
		m.t.Fatalf("/metrics: got %d %s", status, text)
	}
	all := make(series)
	for line := range strings.SplitSeq(text, "\n") {
		at := strings.LastIndexByte(line, ' ')
		if !strings.HasPrefix(line, "seqproxy_") || at < 0 {
			continue
		}
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			m.t.Fatalf("%q: %v", line, err)
		}
		all[strings.TrimPrefix(line[:at], "seqproxy_")] = value
	}
	return all
}

// awaits reads until all series in want have their values.
func (m *metered) awaits(what string, want series) series {
	m.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		all := m.read()
		wrong := ""
		for line, value := range want {
			if got, there := all[line]; !there || got != value {
				wrong += fmt.Sprintf("%s: got %v (told: %t), want %v\n", line, got, there, value)
			}
		}
		if wrong == "" {
			return all
		}
		if time.Now().After(deadline) {
			m.t.Fatalf("%s:\n%s", what, wrong)
		}
	}
}

// moves runs something and waits until the metrics have changed by exactly want. No other series of
// these metrics may change.
func (m *metered) moves(what string, names []string, want series, run func()) {
	m.t.Helper()
	before := m.read().family(names...)
	if len(before) == 0 {
		m.t.Fatalf("%s: got no series of %q", what, names)
	}
	run()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		got := m.read().family(names...).since(before)
		if maps.Equal(got, want) {
			return
		}
		if time.Now().After(deadline) {
			m.t.Fatalf("%s: changed by %v, want %v", what, got, want)
		}
	}
}

// meter reads the metrics of a proxy in this process.
func meter(t *testing.T, s *subject) *metered {
	return &metered{t: t, clients: s.address(), http: s.httpAddress()}
}

// meteredConfig configures a proxy for root in front of a server. Its sequences are in a schema of
// sequence servers. first precedes all tables, rest follows them.
func meteredConfig(s *mysqltest.Server, database, first, rest string, servers ...string) string {
	if !strings.Contains(first, "sequence.allocate_timeout") {
		first += "\nsequence.allocate_timeout = \"1m\""
	}
	for _, address := range servers {
		rest += fmt.Sprintf("\n[[sequence.server]]\naddress = %q\nuser = \"root\"\n", address)
	}
	return fmt.Sprintf(`listen = "127.0.0.1:0"
http.listen = "127.0.0.1:0"
admin.listen = ""
admin_users = ["root"]
sequence.database = %q
sequence.cache = 10
sequence.outage_cover = "0s"
%s
[[user]]
name = "root"
[[shard]]
name = "main"
[[shard.node]]
address = %q
%s
`, database, first, s.Addr(), rest)
}

// must runs statements.
func must(t *testing.T, c *sql.Conn, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := c.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}
