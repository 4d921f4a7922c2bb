//go:build !linux

package backend

import (
	"context"
	"net"
	"net/netip"
)

func dialIP(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	d := net.Dialer{KeepAliveConfig: keepAlive}
	return d.DialContext(ctx, "tcp", to.String())
}
