package protocol

import (
	"crypto/tls"
	"crypto/x509"
	"net"
)

// PacketConn is what a login needs of a connection. *Conn implements it.
//
// Deadlines are the caller's: it bounds a whole login by one on the connection.
type PacketConn interface {
	// ReadPacket returns one payload, valid until the next read. One longer than
	// limit is an error that wraps ErrMalformed.
	ReadPacket(limit int) ([]byte, error)
	// WritePacket writes one packet, numbered after the last one read or written.
	WritePacket(payload []byte) error
	// QueuePacket is WritePacket for a packet that another follows at once: it may
	// wait for that one.
	QueuePacket(payload []byte) error
	// SetPacketNum says what the next packet is numbered.
	SetPacketNum(n uint8)
	// StartTLSServer and StartTLSClient shake hands and make the rest TLS.
	StartTLSServer(cfg *tls.Config) error
	StartTLSClient(cfg *tls.Config) error
	IsTLS() bool
	RemoteAddr() net.Addr
}

// ClientConn is what the login of a client needs of its connection. *Conn implements
// it.
type ClientConn interface {
	PacketConn
	// ReadProxyHeader takes a PROXY header off the front of the stream, if one is
	// expected; otherwise one is an error. See Conn.
	ReadProxyHeader(expected bool) error
	// PeerCertificate returns the client's certificate if it was verified, else nil.
	PeerCertificate() *x509.Certificate
}

var _ ClientConn = (*Conn)(nil)

// loginLimit is the longest packet that a login may send: attributes of MaxAttrs and as
// much again. Whoever can connect makes us hold that.
const loginLimit = 128 << 10

// overUnix says whether the peer is on this machine's Unix socket, which the
// servers and their clients hold to be as safe as TLS.
func overUnix(pc PacketConn) bool {
	addr := pc.RemoteAddr()
	return addr != nil && addr.Network() == "unix"
}
