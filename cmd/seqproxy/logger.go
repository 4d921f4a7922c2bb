package main

import (
	"fmt"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"seqproxy/conf"
)

// newLogger makes the logger, which writes to stderr.
func newLogger(cfg conf.Log) (*zap.Logger, error) {
	level, err := zapcore.ParseLevel(cfg.Level)
	if err != nil {
		return nil, fmt.Errorf("log.level: %w", err)
	}
	z := zap.NewProductionConfig()
	z.Level = zap.NewAtomicLevelAt(level)
	z.DisableCaller, z.DisableStacktrace = true, true
	z.EncoderConfig.EncodeTime = zapcore.ISO8601TimeEncoder
	z.EncoderConfig.EncodeDuration = zapcore.StringDurationEncoder
	z.Encoding = cfg.Format
	if cfg.Format == "console" {
		z.EncoderConfig.EncodeLevel = zapcore.CapitalLevelEncoder
	}
	log, err := z.Build()
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	return log, nil
}
