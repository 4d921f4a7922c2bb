package network

import (
	"encoding/json"
	"time"

	"github.com/Shopify/toxiproxy/v2/toxics"
	"github.com/rs/zerolog"
)

// Weather is what a link does to its connections and their data.
type Weather struct {
	door   door
	toxics []toxic
}

// door is what a link does to new connections.
type door int

const (
	open   door = iota
	refuse      // close them at once
	hold        // accept them and never answer
)

// toxic is a toxic in toxiproxy's format.
type toxic struct {
	Name       string `json:"name"`
	Type       string `json:"type"`
	Stream     string `json:"stream"`
	Attributes any    `json:"attributes,omitempty"`
}

var (
	// Fair weather lets everything pass.
	Fair = Weather{}
	// Refuse closes new connections at once. Existing ones continue.
	Refuse = Weather{door: refuse}
	// Hold accepts new connections and never answers, like a server that hangs, until the client
	// ends them. Existing ones continue.
	Hold = Weather{door: hold}
	// Silent stops both directions without a sign, even of a connection's end. Data under way pass
	// when it is over.
	Silent = Weather{toxics: []toxic{{Name: "up", Type: "seqproxy_silent", Stream: "upstream"}, {Name: "down", Type: "seqproxy_silent", Stream: "downstream"}}}
	// Swallow passes requests and drops answers: the server does what was asked, and nobody hears
	// of it. When it is over, the connections that lost something end.
	Swallow = Weather{toxics: []toxic{{Name: "down", Type: "seqproxy_swallow", Stream: "downstream"}}}
)

// Slow delays each piece by d in each direction, in whole milliseconds.
func Slow(d time.Duration) Weather {
	late := &toxics.LatencyToxic{Latency: d.Milliseconds()}
	return Weather{toxics: []toxic{{Name: "up", Type: "latency", Stream: "upstream", Attributes: late}, {Name: "down", Type: "latency", Stream: "downstream", Attributes: late}}}
}

// Narrow limits each direction of each connection to that many kilobytes per second.
func Narrow(kilobytes int) Weather {
	rate := &toxics.BandwidthToxic{Rate: int64(kilobytes)}
	return Weather{toxics: []toxic{{Name: "up", Type: "bandwidth", Stream: "upstream", Attributes: rate}, {Name: "down", Type: "bandwidth", Stream: "downstream", Attributes: rate}}}
}

// Sliced cuts data into pieces of that many bytes on average, at any place, with a pause after
// each.
func Sliced(bytes int, pause time.Duration) Weather {
	pieces := &toxics.SlicerToxic{AverageSize: bytes, SizeVariation: bytes - 1, Delay: int(pause.Microseconds())}
	return Weather{toxics: []toxic{{Name: "up", Type: "slicer", Stream: "upstream", Attributes: pieces}, {Name: "down", Type: "slicer", Stream: "downstream", Attributes: pieces}}}
}

// CutShort ends each connection after that many further bytes of answers: within an answer, or with
// 0 before it.
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

// silent is missing in toxiproxy: its "timeout" drops data.
type silent struct{}

func (*silent) Pipe(stub *toxics.ToxicStub) { <-stub.Interrupt }

// swallow is toxiproxy's "timeout" without a timeout. That one would also end connections that lost
// nothing.
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

// cutShort is toxiproxy's "limit_data", but it also reads the bytes behind the end. Otherwise the
// goroutine that has them would wait for ever.
type cutShort struct{ toxics.LimitDataToxic }

func (t *cutShort) Pipe(stub *toxics.ToxicStub) {
	if t.LimitDataToxic.Pipe(stub); stub.Closed() {
		end(stub)
	}
}

// end ends a connection: it says that no more data come, and the link then cuts the connection.
// Until then it reads further data.
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
