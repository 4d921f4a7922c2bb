package protocol

import (
	"crypto/tls"
	"crypto/x509"
	"net"
)

// Packets are those of a login, on their way in both directions.
//
// The caller sets deadlines: one bounds a whole login.
type Packets interface {
	// ReadPacket returns one payload, valid until the next read. If it is longer than limit, the
	// error wraps ErrMalformed.
	ReadPacket(limit int) ([]byte, error)
	// WritePacket writes one packet. Its number follows the last one read or written.
	WritePacket(payload []byte) error
	// QueuePacket is WritePacket for a packet that another follows at once. It may wait for that
	// one.
	QueuePacket(payload []byte) error
	// SetPacketNum sets the number of the next packet.
	SetPacketNum(n uint8)
}

// Transport is what carries the packets of a login.
type Transport interface {
	// StartTLSServer and StartTLSClient shake hands. The rest of the stream is TLS.
	StartTLSServer(cfg *tls.Config) error
	StartTLSClient(cfg *tls.Config) error
	IsTLS() bool
	RemoteAddr() net.Addr
}

// PacketConn is a connection to a server that is logged in to. *Conn implements it.
type PacketConn interface {
	Packets
	Transport
}

// ClientConn is the connection of a client that logs in. *Conn implements it.
type ClientConn interface {
	PacketConn
	// ReadProxyHeader reads a PROXY header from the front of the stream if one is expected.
	// Otherwise a header is an error. See Conn.
	ReadProxyHeader(expected bool) error
	// PeerCertificate returns the client's certificate if it was verified, else nil.
	PeerCertificate() *x509.Certificate
}

var _ ClientConn = (*Conn)(nil)

// loginLimit bounds a packet of a login, in bytes: twice the attributes of MaxAttrs. Every client
// that can connect can make the proxy use that much memory.
const loginLimit = 128 << 10

// overUnix reports whether the peer is on a Unix socket of this machine. Servers and their clients
// consider that as safe as TLS.
func overUnix(t Transport) bool {
	addr := t.RemoteAddr()
	return addr != nil && addr.Network() == "unix"
}
