package torture

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"seqproxy/test/network"
)

// took is a request to proxy 0 that brought n numbers.
func took(begin, end time.Duration, conn int, first, n uint64) op {
	return op{kind: &kind{name: "SELECT NEXTVAL", sequence: "photos"}, conn: conn, life: 1, shard: -1, begin: begin, end: end, first: first, n: n}
}

// orphan is a request whose client has given up, and whose key was found in its table.
func orphan(o op) op {
	o.err = errors.New("invalid connection")
	return o
}

func on(sequence string, o op) op {
	o.kind = &kind{name: "SELECT NEXTVAL", sequence: sequence}
	return o
}

func from(proxy int, o op) op {
	o.proxy = proxy
	return o
}

// uuidOf is a request that brought a UUID whose first bytes are 7.
func uuidOf(begin time.Duration, text string) op {
	o := took(begin, begin+1, 1, 7, 1)
	o.text = text
	return o
}

// dayOf is a request that brought a key of a day of a month.
func dayOf(day int, counter uint64, begin time.Duration) op {
	o := took(begin, begin+1, 1, counter, 1)
	o.dated = time.Date(2026, 11, day, 0, 0, 0, 0, time.UTC)
	return o
}

func TestEveryWrongHistoryIsFound(t *testing.T) {
	restart := []epochChange{{begin: 10, end: 12, done: true}}
	for _, c := range []struct {
		name   string
		ops    []op
		epochs []epochChange
		want   string // the finding, "" for none
	}{
		{"nothing wrong", []op{took(1, 2, 1, 1, 1), took(3, 4, 1, 2, 7), took(3, 4, 2, 9, 1)}, nil, ""},
		{"one number twice", []op{from(1, took(1, 2, 1, 5, 1)), took(3, 4, 2, 5, 1)}, nil, "DUPLICATE: 5 of photos"},
		{"two UUIDs that begin alike", []op{on(random, uuidOf(1, "a")), on(random, uuidOf(3, "b")), on(random, uuidOf(5, "c"))}, nil, ""},
		{"one UUID twice", []op{on(random, uuidOf(1, "a")), on(random, uuidOf(3, "b")), on(random, uuidOf(5, "a"))}, nil, "DUPLICATE: 7 (61) of random"},
		{"UUIDs that fall", []op{on(timed, uuidOf(1, "a")), on(timed, took(3, 4, 2, 6, 1))}, nil, "from the same proxy"},
		{"UUIDs that may fall", []op{on(random, uuidOf(1, "a")), on(random, took(3, 4, 2, 6, 1))}, nil, ""},
		{"one counter of two days", []op{on(days, dayOf(1, 7, 1)), on(days, dayOf(2, 7, 3)), on(days, dayOf(1, 8, 5))}, nil, ""},
		{"one counter of a day twice", []op{on(days, dayOf(1, 7, 1)), on(days, dayOf(2, 7, 3)), on(days, dayOf(1, 7, 5))}, nil, "DUPLICATE: 7 of days of 2026-11-01"},
		{"a day before comes again, and its counters fall", []op{on(days, dayOf(1, 7, 1)), on(days, dayOf(2, 1, 3)), on(days, dayOf(1, 6, 5))}, nil, "from the same proxy"},
		{"within a run", []op{from(1, took(1, 2, 1, 5, 7)), took(3, 4, 2, 11, 1)}, nil, "DUPLICATE: 11 of photos"},
		{"run that holds others", []op{from(1, took(1, 2, 1, 1, 100)), took(3, 4, 2, 5, 1), from(2, took(3, 4, 3, 50, 1))}, nil, "DUPLICATE: 50 of photos"},
		{"one number of two sequences", []op{took(1, 2, 1, 5, 1), on("users", took(3, 4, 2, 5, 1))}, nil, ""},
		{"falling in a session", []op{from(1, took(1, 2, 1, 5, 1)), from(1, took(3, 4, 1, 4, 1))}, nil, "on the same connection"},
		{"falling in a proxy", []op{took(1, 2, 1, 5, 1), took(3, 4, 2, 4, 1)}, nil, "from the same proxy"},
		{"falling after one whose client has given up", []op{orphan(took(1, 2, 1, 5, 1)), took(3, 4, 2, 4, 1)}, nil, ""},
		{"falling, and its client has given up", []op{took(1, 2, 1, 5, 1), orphan(took(3, 4, 2, 4, 1))}, nil, "from the same proxy"},
		{"one number twice, of which one was lost", []op{from(1, orphan(took(1, 2, 1, 5, 1))), took(3, 4, 2, 5, 1)}, nil, "DUPLICATE: 5 of photos"},
		{"again after a restart, of which one was lost before it", []op{on(restarted, orphan(took(1, 2, 1, 5, 1))), on(restarted, took(13, 14, 2, 5, 1))}, restart, ""},
		{"at the same time", []op{took(1, 4, 1, 5, 1), took(3, 5, 2, 4, 1)}, nil, ""},
		{"falling over proxies", []op{took(1, 2, 1, 5, 1), from(1, took(3, 4, 2, 4, 1))}, nil, ""},
		{"falling over proxies, with ORDER", []op{on(ordered, took(1, 2, 1, 5, 1)), on(ordered, from(1, took(3, 4, 2, 4, 1)))}, nil, "in time"},
		{"again after a restart", []op{on(restarted, took(1, 2, 1, 5, 1)), on(restarted, took(13, 14, 2, 5, 1))}, restart, ""},
		{"again during a restart", []op{on(restarted, took(1, 2, 1, 5, 1)), on(restarted, took(11, 14, 2, 5, 1))}, restart, ""},
		{"twice after a restart", []op{on(restarted, from(1, took(15, 16, 1, 5, 1))), on(restarted, took(13, 14, 2, 5, 1))}, restart, "DUPLICATE"},
		{"again after a restart that was refused", []op{on(restarted, from(1, took(1, 2, 1, 5, 1))), on(restarted, took(13, 14, 2, 5, 1))}, []epochChange{{begin: 10, end: 12, undone: true}}, "DUPLICATE"},
	} {
		got := strings.Join(checkKeys(slices.Clone(c.ops), c.epochs), "\n")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestEveryFailureNeedsACause(t *testing.T) {
	l, err := network.NewLink("127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s, shard := &server{name: "sequence"}, &server{name: "shard0"}
	failed := func(err error) op {
		o := took(10*time.Second, 11*time.Second, 1, 0, 1)
		o.err = err
		return o
	}
	away := &mysql.MySQLError{Number: 1105, Message: `seqproxy: sequence "photos": its sequence server is unavailable (waited 3s); try again`}
	full := &mysql.MySQLError{Number: 1105, Message: `seqproxy: sequence "photos": no number is left in memory, and none is reserved while the proxy cannot write its state file`}
	long := took(10*time.Second, 17*time.Second, 1, 5, 1)
	onShard := failed(mysql.ErrInvalidConn)
	onShard.shard = 0
	for _, c := range []struct {
		name string
		op   op
		hit  part // the part that a fault has hit at the time
		want string
	}{
		{"sequence server away", failed(away), s.part(), ""},
		{"its network", failed(away), linkPart(0, s), ""},
		{"not away", failed(away), proxyPart(1), "without a cause"},
		{"full disk", failed(full), proxyPart(0), ""},
		{"full disk of another proxy", failed(full), proxyPart(1), "without a cause"},
		{"error that names nothing", failed(&mysql.MySQLError{Number: 1105, Message: "seqproxy: no"}), s.part(), "names not both"},
		{"error before the owned columns were read", failed(&mysql.MySQLError{Number: 1105, Message: "seqproxy: whether a column of this table is filled from a sequence (OWNED BY) is not known yet: the sequence table: its sequence server is unavailable"}), s.part(), ""},
		{"other code", failed(&mysql.MySQLError{Number: 1064, Message: "syntax"}), s.part(), "UNEXPECTED"},
		{"duplicate key", failed(&mysql.MySQLError{Number: 1062, Message: "duplicate"}), proxyPart(0), "UNEXPECTED"},
		{"connection lost", failed(mysql.ErrInvalidConn), proxyPart(0), ""},
		{"connection lost with the sequence server", failed(mysql.ErrInvalidConn), s.part(), "LOST"},
		{"connection lost with the shard", onShard, shard.part(), ""},
		{"malformed packet", failed(mysql.ErrMalformPkt), proxyPart(0), "PROTOCOL"},
		{"wrong LAST_INSERT_ID()", failed(errWrong), proxyPart(0), "WRONG"},
		{"long without a cause", long, "", "HANG"},
		{"long, as the sequence server is away", long, s.part(), "HANG"},
		{"long, as the proxy is stopped", long, proxyPart(0), ""},
	} {
		w := &world{proxies: []*proxy{{state: "/var/state0"}, {state: "/var/state1"}}, sequence: s, members: []*server{s}, nodes: []*server{s}, shards: []*server{shard}, links: map[part]*network.Link{linkPart(0, s): l, linkPart(0, shard): l}}
		w.trouble = &trouble{windows: []*window{{fault: "test", parts: []part{c.hit}, begin: 9 * time.Second, end: 12 * time.Second}}}
		got := w.trouble.judge(&c.op, w)
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestFaultsOfOneVictimDoNotOverlap(t *testing.T) {
	n := newNemesis(&world{trouble: &trouble{clock: clock{time.Now()}}})
	heal, err := n.hurt("first", "proxy 0", "server sequence")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.hurt("second", "proxy 1", "server sequence"); !errors.Is(err, errBusy) {
		t.Errorf("got %v, want errBusy", err)
	}
	if _, err := n.claim("proxy 1"); err != nil {
		t.Errorf("what was refused is taken: %v", err)
	}
	heal()
	if _, err := n.hurt("third", "server sequence"); err != nil {
		t.Error(err)
	}
	if got := n.world.trouble.explains(0, time.Hour, 0, "proxy 0"); got != "first" {
		t.Errorf("got %q for what happened, want first", got)
	}
}
