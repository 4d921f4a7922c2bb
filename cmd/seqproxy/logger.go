package main

import (
	"fmt"

	"seqproxy/conf"
	"seqproxy/internal/logs"
)

// openLog opens the configured log. The caller must close it.
func openLog(cfg conf.Log) (*logs.Log, error) {
	o := logs.Options{Level: cfg.Level, JSON: cfg.Format == "json"}
	if cfg.Output != conf.LogStderr {
		o.Output = cfg.Output
	}
	log, err := logs.Open(o)
	if err != nil {
		return nil, fmt.Errorf("log.output: %w", err)
	}
	return log, nil
}

// FlushLogs opens the log file again by its name, after somebody has moved it away. If that fails,
// the log continues in the old file. Any goroutine may call it.
func (r *running) FlushLogs() error {
	if err := r.logs.Reopen(); err != nil {
		return fmt.Errorf("log.output: %w", err)
	}
	return nil
}
