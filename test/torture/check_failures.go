package torture

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-sql-driver/mysql"
)

const (
	// aftermath is for how long after a fault its consequences may be met: connections that are
	// checked again, backoff between attempts.
	aftermath = 4 * time.Second
	// sluggish is what a busy machine may add to a bound.
	sluggish = 3 * time.Second
)

func isNetwork(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// judge returns what is wrong with how a request failed, or with how long it took; "" if nothing
// is.
func (t *trouble) judge(o *op, w *world) string {
	var endpoint, shards, sequences []part
	if o.proxy < 0 {
		endpoint = []part{w.members[o.member].part()}
	} else {
		endpoint = []part{proxyPart(o.proxy)}
		sequences = w.sequenceParts(o.proxy)
	}
	if o.kind.sequence == snow || beginsDaily(o.kind.sequence) {
		// A proxy begins to give such keys, or those of another day, only where the server's clock
		// agrees with its own, and it may have to make a row.
		sequences = append(sequences, changePart)
		for _, s := range w.nodes {
			sequences = append(sequences, s.clockPart())
		}
		if o.proxy >= 0 {
			sequences = append(sequences, w.proxies[o.proxy].clockPart())
		}
	}
	if o.shard >= 0 {
		s := w.shards[o.shard]
		shards = []part{s.part(), linkPart(o.proxy, s)}
	}
	// A shard or a proxy may delay a client for as long as it does not run; the sequence server may
	// not.
	free := t.suffered(o.begin, o.end, append(endpoint, shards...)...)
	if free > 0 {
		free += aftermath
	}
	if took := o.end - o.begin; took > allocateTimeout+sluggish+free {
		return fmt.Sprintf("HANG: %v", took.Round(time.Millisecond))
	}
	if o.err == nil {
		return ""
	}
	if errors.Is(o.err, errWrong) {
		return "WRONG ANSWER"
	}
	for _, broken := range []error{mysql.ErrMalformPkt, mysql.ErrPktSync, mysql.ErrPktSyncMul, mysql.ErrPktTooLarge, mysql.ErrUnknownPlugin} {
		if errors.Is(o.err, broken) {
			return "PROTOCOL ERROR"
		}
	}
	explained := func(parts ...part) bool { return t.explains(o.begin, o.end, aftermath, parts...) != "" }
	var said *mysql.MySQLError
	if !errors.As(o.err, &said) {
		if !explained(append(endpoint, shards...)...) {
			return "CONNECTION LOST without a cause"
		}
		return ""
	}
	if o.proxy < 0 {
		return unless(explained(endpoint...), "ERROR of the server")
	}
	switch said.Number {
	case gomysql.ER_UNKNOWN_ERROR:
		if !saysWhy(said.Message) || !namesSequence(said.Message, o.kind.sequence) {
			return "ERROR that names not both the sequence, and what is in the way"
		}
		if o.kind.sequence == restarted && t.restarting(o) {
			return ""
		}
		return unless(explained(append(endpoint, sequences...)...), "ERROR without a cause")
	case gomysql.ER_SERVER_SHUTDOWN:
		return unless(explained(append(endpoint, shards...)...), "ERROR without a cause")
	case gomysql.ER_CONNECT_TO_FOREIGN_DATA_SOURCE:
		if o.shard >= 0 && !strings.Contains(said.Message, w.links[linkPart(o.proxy, w.shards[o.shard])].Addr()) {
			return "ERROR that does not name the shard's server"
		}
		return unless(explained(append(append(endpoint, shards...), sequences...)...), "ERROR without a cause")
	}
	return "UNEXPECTED ERROR"
}

func unless(ok bool, text string) string {
	if ok {
		return ""
	}
	return text
}

// checkFailures judges all requests that brought no key, and all that took long.
func checkFailures(ops []op, w *world) (wrong []string) {
	found := make(map[string][]string)
	for i := range ops {
		if text := w.trouble.judge(&ops[i], w); text != "" {
			found[text] = append(found[text], text+"\n    "+ops[i].String())
		}
	}
	for _, list := range found {
		wrong = append(wrong, few(list)...)
	}
	return wrong
}

// namesSequence reports whether an error names the sequence, or is about all sequences: before a
// proxy has read which columns are filled from one, it cannot know the name.
func namesSequence(text, name string) bool {
	return slices.ContainsFunc([]string{fmt.Sprintf("sequence %q", name), "seqproxy." + name, "sequence table", "is filled from a sequence (OWNED BY)"},
		func(part string) bool { return strings.Contains(text, part) })
}

// saysWhy reports whether an error has the reason why there is no number. The proxy's log names the
// server.
func saysWhy(text string) bool {
	return slices.ContainsFunc([]string{"sequence server", "ORDER sequence", "state file", "the clock is "}, func(why string) bool { return strings.Contains(text, why) })
}
