package mysqltest

import (
	"testing"
	"time"

	"seqproxy/test/network"
)

// Link is a connection to a server that can be cut while the server lives, as a network can:
// connections end, and new ones are refused.
type Link struct{ way *network.Link }

// NewLink makes a link that lives until the end of the test.
func NewLink(t testing.TB, target string) *Link {
	t.Helper()
	way, err := network.NewLink(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(way.Close)
	return &Link{way}
}

// Addr returns the address of the server by way of this link.
func (l *Link) Addr() string { return l.way.Addr() }

// Cut cuts the link until Mend.
func (l *Link) Cut() { l.way.CutOff() }

// Delay delays later data by d in both directions, as if the server were far away, until Mend.
func (l *Link) Delay(d time.Duration) { l.way.Set(network.Slow(d)) }

// Silence stops all data until Mend. Nothing is lost.
func (l *Link) Silence() { l.way.Set(network.Silent) }

// LoseAnswers ends each connection at the server's next answer, and drops the answer, until Mend.
func (l *Link) LoseAnswers() { l.way.Set(network.CutShort(0)) }

// Lost returns how many connections were ended by LoseAnswers.
func (l *Link) Lost() int { return l.way.Broken() }

// Hold accepts new connections without ever answering, like a server that hangs, until Mend.
func (l *Link) Hold() { l.way.Set(network.Hold) }

// Waiting returns how many connections wait because of Hold.
func (l *Link) Waiting() int { return l.way.Waiting() }

// Mend lets everything pass again.
func (l *Link) Mend() { l.way.Set(network.Fair) }
