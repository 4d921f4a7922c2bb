package main

import (
	"fmt"

	"seqproxy/conf"
	"seqproxy/internal/logs"
)

// openLog opens the log that the configuration asks for. The caller must close it.
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

// FlushLogs opens the log file again by its name, after it was moved away. If it cannot
// be opened the log goes on where it was. It may be called from any goroutine.
func (r *running) FlushLogs() error {
	if err := r.logs.Reopen(); err != nil {
		return fmt.Errorf("log.output: %w", err)
	}
	return nil
}
