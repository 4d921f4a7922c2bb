package mysqltest

import (
	"testing"
	"time"

	"seqproxy/test/network"
)

// Link is one way to a server that can be cut while the server lives, as a network is: connections
// end, and new ones are refused.
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

// Addr is where the server is reached by this link.
func (l *Link) Addr() string { return l.way.Addr() }

// Cut cuts the link until Mend.
func (l *Link) Cut() { l.way.CutOff() }

// Delay makes what comes next, in either direction, arrive later by d, as if the server were far
// away, until Mend.
func (l *Link) Delay(d time.Duration) { l.way.Set(network.Slow(d)) }

// Silence lets nothing pass until Mend; then it goes on as if nothing had been.
func (l *Link) Silence() { l.way.Set(network.Silent) }

// LoseAnswers ends each connection when the server next says something, instead of passing it on,
// until Mend.
func (l *Link) LoseAnswers() { l.way.Set(network.CutShort(0)) }

// Lost is how many connections were ended so.
func (l *Link) Lost() int { return l.way.Broken() }

// Hold has the link take new connections and say nothing there, as a server that stands still does,
// until Mend.
func (l *Link) Hold() { l.way.Set(network.Hold) }

// Held is how many connections wait for the server to say something because of Hold.
func (l *Link) Held() int { return l.way.Held() }

// Mend lets everything through again.
func (l *Link) Mend() { l.way.Set(network.Fair) }
