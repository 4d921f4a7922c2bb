package web

import (
	"log"
	"strings"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
)

// lines turns each text that a library logs into an event with that text.
type lines func(text string)

func (l lines) Write(text []byte) (int, error) {
	l(strings.TrimSpace(string(text)))
	return len(text), nil
}

// connectionLog is for the HTTP server. A bad request only gets an answer: it is no event of the
// proxy.
func connectionLog(logger *zap.Logger) *log.Logger {
	return log.New(lines(func(text string) { logger.Debug("HTTP request failed", zap.String(logfield.NameErr, text)) }), "", 0)
}

// metricsLog is for the library that collects metrics.
func metricsLog(logger *zap.Logger) *log.Logger {
	return log.New(lines(func(text string) {
		logger.Warn("metrics are not complete", zap.String(logfield.NameErr, text))
	}), "", 0)
}
