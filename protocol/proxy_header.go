package protocol

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"

	"github.com/pires/go-proxyproto"
)

// Constants of the PROXY protocol, by which a balancer sends the address of its client
// (https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt).
const (
	maxProxyLine = 107 // of version 1, with its line end
	proxyHead    = 16  // of version 2: signature, command, family, length of the rest
	// of version 2; enough for a certificate and the names that balancers add
	maxProxyRest = 4096
)

var (
	proxyLineStart = []byte("PROXY ")
	proxySignature = []byte("\r\n\r\n\x00\r\nQUIT\n")
)

var (
	// errNoProxyHeader says that the stream begins with something else.
	errNoProxyHeader = errors.New("no PROXY header")
	// errProxyHeaderForbidden is a header where none is expected.
	errProxyHeaderForbidden = fmt.Errorf("%w: a PROXY header from an address that none is taken from", ErrMalformed)
)

// ReadProxyHeader reads the PROXY header at the front of the stream, if one is expected. RemoteAddr
// is then the address in it. A header for anything but a TCP connection (a health check, a Unix
// socket) leaves the peer's own address. If none is expected, a header is an error.
//
// Errors about the bytes wrap ErrMalformed. The greeting may go out before: balancers send the
// header at once, or with the client's first packet.
func (c *Conn) ReadProxyHeader(expected bool) error {
	for {
		b := c.Buffered()
		n, err := proxyHeaderLen(b)
		switch {
		case !expected && n > 0, !expected && errors.Is(err, ErrMalformed):
			return errProxyHeaderForbidden
		case !expected && len(b) > 0:
			return nil
		case err != nil:
			return err
		case n > 0:
			addr, err := parseProxyHeader(b[:n])
			if err != nil {
				return err
			}
			c.Discard(n)
			if addr != nil {
				c.remote = addr
			}
			return nil
		}
		if err := c.fillPacket(); err != nil {
			return err
		}
	}
}

// proxyHeaderLen returns the length of the header at the start of b, or 0 if b is too short to say.
func proxyHeaderLen(b []byte) (int, error) {
	switch {
	case bytes.HasPrefix(b, proxySignature):
		if len(b) < proxyHead {
			return 0, nil
		}
		rest := int(binary.BigEndian.Uint16(b[proxyHead-2:]))
		if rest > maxProxyRest {
			return 0, fmt.Errorf("PROXY header: %w: %d bytes, at most %d are expected", ErrMalformed, rest, maxProxyRest)
		}
		if len(b) < proxyHead+rest {
			return 0, nil
		}
		return proxyHead + rest, nil
	case bytes.HasPrefix(b, proxyLineStart):
		line := b[:min(len(b), maxProxyLine)]
		if end := bytes.IndexByte(line, '\n'); end >= 0 {
			return end + 1, nil
		}
		if len(line) == maxProxyLine {
			return 0, fmt.Errorf("PROXY header: %w: no end of line within %d bytes", ErrMalformed, maxProxyLine)
		}
		return 0, nil
	case bytes.HasPrefix(proxySignature, b), bytes.HasPrefix(proxyLineStart, b):
		return 0, nil
	}
	return 0, errNoProxyHeader
}

// parseProxyHeader returns the client's address in a complete header, or nil if it has none.
func parseProxyHeader(b []byte) (net.Addr, error) {
	const unspecified = 0 // family and transport in version 2, which a receiver may accept or not
	if bytes.HasPrefix(b, proxySignature) && b[12] == byte(proxyproto.PROXY) && b[13] == unspecified {
		return nil, nil
	}
	h, err := proxyproto.Read(bufio.NewReaderSize(bytes.NewReader(b), len(b)))
	if err != nil {
		return nil, fmt.Errorf("PROXY header: %w: %w", ErrMalformed, err)
	}
	if h.Command.IsLocal() {
		return nil, nil
	}
	switch source := h.SourceAddr.(type) {
	case *net.TCPAddr:
		return source, nil
	case *net.UnixAddr:
		return nil, nil // refused as an address: no header may claim this machine's socket
	}
	return nil, fmt.Errorf("PROXY header: %w: of a connection that is not TCP", ErrMalformed)
}
