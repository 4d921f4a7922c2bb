package web

import (
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// TestTextsOfLibrariesAreEventsWithAnError checks that such an event has a constant name.
func TestTextsOfLibrariesAreEventsWithAnError(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	connectionLog(zap.New(core)).Printf("http: panic serving %s", "127.0.0.1:1")
	metricsLog(zap.New(core)).Println("error gathering metrics:", "x\ny")
	for i, want := range [][2]string{
		{"HTTP request failed", "http: panic serving 127.0.0.1:1"}, {"metrics are not complete", "error gathering metrics: x\ny"},
	} {
		line := logs.All()[i]
		if line.Message != want[0] || line.ContextMap()["err"] != want[1] {
			t.Errorf("got %s %v, want %q", line.Message, line.ContextMap(), want)
		}
	}
}
