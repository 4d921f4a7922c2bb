//go:build !linux

package backend

import (
	"context"
	"net"
	"net/netip"
)

func dialIP(ctx context.Context, d net.Dialer, to netip.AddrPort) (net.Conn, error) {
	return d.DialContext(ctx, "tcp", to.String())
}
