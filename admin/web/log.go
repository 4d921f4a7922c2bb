package web

import (
	"log"
	"strings"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
)

// lines takes what the libraries below log as text; each is an event with it.
type lines func(text string)

func (l lines) Write(text []byte) (int, error) {
	l(strings.TrimSpace(string(text)))
	return len(text), nil
}

// connectionLog is for the HTTP server. A bad request gets an answer, and is no event of the proxy.
func connectionLog(logger *zap.Logger) *log.Logger {
	return log.New(lines(func(text string) { logger.Debug("HTTP request failed", zap.String(logfield.NameErr, text)) }), "", 0)
}

// metricsLog is for who collects the metrics.
func metricsLog(logger *zap.Logger) *log.Logger {
	return log.New(lines(func(text string) {
		logger.Warn("metrics are not complete", zap.String(logfield.NameErr, text))
	}), "", 0)
}
