package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"seqproxy/internal/logfield"
)

// A service manager that wants to know (systemd with Type=notify) is told when the proxy listens,
// reloads and stops: https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html

// notifyReady says that clients are accepted.
func (r *running) notifyReady() {
	r.notifyManager(daemon.SdNotifyReady, "STATUS=listening on "+r.server.Addr().String())
}

// notifyReloading says that a reload has begun. The caller calls notifyReady at its end.
func (r *running) notifyReloading() {
	r.notifyManager(daemon.SdNotifyReloading, strings.TrimSpace(daemon.SdNotifyMonotonicUsec()))
}

// notifyStopping says that the proxy stops, and for how long that may go on from now.
func (r *running) notifyStopping(limit time.Duration) {
	r.notifyManager(daemon.SdNotifyStopping, fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", limit.Microseconds()))
}

func (r *running) notifyManager(lines ...string) {
	if _, err := daemon.SdNotify(false, strings.Join(lines, "\n")); err != nil {
		r.log.Warn("service manager not told", logfield.Err(err))
	}
}
