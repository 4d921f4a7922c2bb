//go:build !linux

package main

import (
	"errors"
	"time"
)

var errPlatform = errors.New("the benchmark reads CPU time and memory of its targets from Linux's /proc and pins them with sched_setaffinity; run it on Linux")

func checkPlatform() error { return errPlatform }

type affinity struct{ cpu int }

func pinSelf() (*affinity, error)        { return nil, errPlatform }
func (*affinity) restore() error         { return errPlatform }
func cpuTime(int) (time.Duration, error) { return 0, errPlatform }
func residentBytes(int) (int64, error)   { return 0, errPlatform }
func peakBytes(int) (int64, error)       { return 0, errPlatform }
func resetPeak(int) error                { return errPlatform }
func openFiles(int) (int, error)         { return 0, errPlatform }
func raiseFileLimit() error              { return errPlatform }
func machine() string                    { return "" }
func loadAverage() string                { return "" }
