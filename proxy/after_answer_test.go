package proxy_test

import (
	"context"
	"testing"
	"time"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/statement"
)

// afterAnswer answers statements with OK, and runs a function after the answer.
type afterAnswer struct{ run func() }

func (a afterAnswer) Execute(_ context.Context, _ *statement.Statement, _ proxy.Caller) (*protocol.Table, error) {
	return &protocol.Table{After: a.run}, nil
}

func (afterAnswer) Columns(*statement.Statement) []protocol.Column { return nil }

// TestWhatRunsAfterAnAnswerRunsWhenTheClientHasIt: SEQPROXY SHUTDOWN IMMEDIATE relies on this
// order.
func TestWhatRunsAfterAnAnswerRunsWhenTheClientHasIt(t *testing.T) {
	has, ran := make(chan struct{}), make(chan bool, 2)
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) {
		o.Admin = afterAnswer{run: func() {
			select {
			case <-has:
				ran <- true
			case <-time.After(2 * wireTimeout):
				ran <- false
			}
		}}
	}})
	w := e.Wire(t, e.Addr(), wireLogin{Packing: notPacked})
	w.send(packet(command(protocol.ComStmtPrepare, "SEQPROXY FLUSH LOGS")))
	if _, err := w.receivePrepare(); err != nil {
		t.Fatal(err)
	}
	for what, command := range map[string][]byte{
		"a text": command(protocol.ComQuery, "SEQPROXY FLUSH LOGS"), "an execution": execution(1, nil, false),
	} {
		w.send(packet(command))
		w.answerOK(what)
		has <- struct{}{}
		if !<-ran {
			t.Errorf("%s: the function ran before the client had the answer", what)
		}
	}
}
