package admin

import (
	"testing"
	"time"

	"seqproxy/sequence"
)

func TestTheEndIsToldForPeople(t *testing.T) {
	const day = 24 * time.Hour
	for d, want := range map[time.Duration]any{
		sequence.Never:    nil,
		0:                 "now",
		time.Second:       "in 1 minutes at today's rate",
		119 * time.Minute: "in 119 minutes at today's rate",
		2 * time.Hour:     "in 2 hours at today's rate",
		47 * time.Hour:    "in 47 hours at today's rate",
		210 * day:         "in 210 days at today's rate",
		700 * day:         "in 700 days at today's rate",
		800 * day:         "in 2 years at today's rate",
		36500 * day:       "in 100 years at today's rate",
	} {
		if got := end(d); got != want {
			t.Errorf("%v: got %v, want %v", d, got, want)
		}
	}
}
