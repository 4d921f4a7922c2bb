//go:build !linux

package proxy

import (
	"net"
	"time"
)

// listenConfig makes listeners whose clients are found within two minutes when they
// vanish without a word.
func listenConfig() net.ListenConfig {
	return net.ListenConfig{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: time.Minute, Interval: 10 * time.Second, Count: 6},
	}
}
