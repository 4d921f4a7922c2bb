package stats

import (
	"time"
)

// Epoch is where Clock begins.
var Epoch = time.Now()

// Clock is the time since Epoch. It costs half of what time.Now does.
func Clock() time.Duration { return time.Since(Epoch) }
