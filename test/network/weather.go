package network

import (
	"encoding/json"
	"time"

	"github.com/Shopify/toxiproxy/v2/toxics"
	"github.com/rs/zerolog"
)

// Weather is what a link does to its connections and to what passes.
type Weather struct {
	door   door
	toxics []toxic
}

// door is what a link does with new connections.
type door int

const (
	open   door = iota
	refuse      // they are closed at once
	hold        // they are accepted, and nobody answers
)

// toxic is one as toxiproxy reads it.
type toxic struct {
	Name       string `json:"name"`
	Type       string `json:"type"`
	Stream     string `json:"stream"`
	Attributes any    `json:"attributes,omitempty"`
}

var (
	// Fair weather lets everything pass.
	Fair = Weather{}
	// Refuse closes new connections at once. Those that exist go on.
	Refuse = Weather{door: refuse}
	// Hold accepts new connections and leaves them without an answer until their client ends them,
	// whatever comes, as a server does that stands still. Those that exist go on.
	Hold = Weather{door: hold}
	// Silent lets nothing pass in either direction, and tells nobody, not even of a connection's
	// end. What was on its way passes when it is over.
	Silent = Weather{toxics: []toxic{{Name: "up", Type: "seqproxy_silent", Stream: "upstream"}, {Name: "down", Type: "seqproxy_silent", Stream: "downstream"}}}
	// Swallow lets requests pass and answers not: what was asked for is done, and nobody hears of
	// it. When it is over, the connections end that lost something.
	Swallow = Weather{toxics: []toxic{{Name: "down", Type: "seqproxy_swallow", Stream: "downstream"}}}
)

// Slow makes each piece late by d, in milliseconds, in each direction.
func Slow(d time.Duration) Weather {
	late := &toxics.LatencyToxic{Latency: d.Milliseconds()}
	return Weather{toxics: []toxic{{Name: "up", Type: "latency", Stream: "upstream", Attributes: late}, {Name: "down", Type: "latency", Stream: "downstream", Attributes: late}}}
}

// Narrow lets so many kilobytes pass in a second in each direction of each connection.
func Narrow(kilobytes int) Weather {
	rate := &toxics.BandwidthToxic{Rate: int64(kilobytes)}
	return Weather{toxics: []toxic{{Name: "up", Type: "bandwidth", Stream: "upstream", Attributes: rate}, {Name: "down", Type: "bandwidth", Stream: "downstream", Attributes: rate}}}
}

// Sliced cuts what passes at any place into pieces of so many bytes on average, which come one
// after the other with a pause.
func Sliced(bytes int, pause time.Duration) Weather {
	pieces := &toxics.SlicerToxic{AverageSize: bytes, SizeVariation: bytes - 1, Delay: int(pause.Microseconds())}
	return Weather{toxics: []toxic{{Name: "up", Type: "slicer", Stream: "upstream", Attributes: pieces}, {Name: "down", Type: "slicer", Stream: "downstream", Attributes: pieces}}}
}

// CutShort ends each connection when so many bytes of answers have passed since it came: in the
// middle of one, or before it with none.
func CutShort(bytes int) Weather {
	return Weather{toxics: []toxic{{Name: "down", Type: "seqproxy_cut_short", Stream: "downstream", Attributes: &toxics.LimitDataToxic{Bytes: int64(bytes)}}}}
}

func (t toxic) json() []byte {
	text, err := json.Marshal(t)
	if err != nil {
		panic(err) // they are all in this file
	}
	return text
}

// silent is what toxiproxy does not have: its "timeout" drops what comes.
type silent struct{}

func (*silent) Pipe(stub *toxics.ToxicStub) { <-stub.Interrupt }

// swallow is toxiproxy's "timeout" without one, but for what comes after: that would also end the
// connections that lost nothing.
type swallow struct{}

func (*swallow) Pipe(stub *toxics.ToxicStub) {
	for hole := false; ; hole = true {
		select {
		case <-stub.Interrupt:
			if hole {
				end(stub)
			}
			return
		case piece := <-stub.Input:
			if piece == nil {
				stub.Close()
				return
			}
		}
	}
}

// cutShort is toxiproxy's "limit_data" that takes in what comes behind the end, or the goroutine
// that has it would wait for ever.
type cutShort struct{ toxics.LimitDataToxic }

func (t *cutShort) Pipe(stub *toxics.ToxicStub) {
	if t.LimitDataToxic.Pipe(stub); stub.Closed() {
		end(stub)
	}
}

// end ends a connection: the link cuts it when it is told that no more comes. What still comes is
// taken in until then.
func end(stub *toxics.ToxicStub) {
	stub.Close()
	for range stub.Input { //nolint:revive // taken in
	}
}

func init() {
	zerolog.SetGlobalLevel(zerolog.Disabled) // "bandwidth" logs to it; nobody else does
	toxics.Register("seqproxy_silent", new(silent))
	toxics.Register("seqproxy_swallow", new(swallow))
	toxics.Register("seqproxy_cut_short", new(cutShort))
}
