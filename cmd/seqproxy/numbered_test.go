package main

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"seqproxy/sequence"
)

func TestACheckOfBoundColumnsThatFailsAgainIsTheSameComplaint(t *testing.T) {
	check := func(waited time.Duration, shard string) string {
		unknown := fmt.Errorf("which columns own a sequence: %w", &sequence.UnavailableError{Server: "ids", Waited: waited, Err: errors.New("refused")})
		return withoutWait(errors.Join(unknown, errors.New(shard)))
	}
	if one, other := check(10*time.Second, "shard a"), check(10001*time.Millisecond, "shard a"); one != other {
		t.Errorf("got %q and %q, want one text", one, other)
	}
	if one, other := check(10*time.Second, "shard a"), check(10*time.Second, "shard b"); one == other {
		t.Errorf("got %q of both shards", one)
	}
}
