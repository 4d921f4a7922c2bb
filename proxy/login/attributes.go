package login

import (
	"bytes"
	"strconv"

	"seqproxy/protocol"
)

// Connection attributes that a server gets in addition to the client's, in
// performance_schema.session_connect_attrs: the server sees only the proxy as its client. They come
// last, since servers keep only the first performance_schema_session_connect_attrs_size bytes.
const (
	attributePrefix  = "_proxy_"
	attributeName    = attributePrefix + "name"    // "seqproxy"
	attributeVersion = attributePrefix + "version" // "1.2.0"
	// the client's connection id
	attributeConnection = attributePrefix + "connection_id"
	attributeClient     = attributePrefix + "client_host" // "10.0.0.5"
)

// ProxyAttributes are the attributes that all sessions share.
func ProxyAttributes(version string) protocol.Attrs {
	a := protocol.Attrs(nil).With(attributeName, "seqproxy")
	if version != "" {
		a = a.With(attributeVersion, version)
	}
	return a
}

// connectionAttributes returns the client's attributes followed by the proxy's. It omits attributes
// of the client with the proxy's names, and the proxy's if all together exceed what servers accept.
func (l *Login) connectionAttributes() protocol.Attrs {
	proxys, client := l.gate.Attributes, l.Attrs
	if bytes.Contains(client, []byte(attributePrefix)) {
		client = withoutProxys(client)
	}
	var digits [10]byte
	id := strconv.AppendUint(digits[:0], uint64(l.id), 10)
	host := protocol.HostOf(l.client.RemoteAddr())
	const framing = 4 * 9 // of the lengths of two names and two values
	all := make(protocol.Attrs, 0, len(client)+len(proxys)+len(attributeConnection)+len(id)+len(attributeClient)+len(host)+framing)
	all = append(append(all, client...), proxys...)
	all = protocol.AppendLenEncBytes(protocol.AppendLenEncBytes(all, attributeConnection), id)
	all = protocol.AppendLenEncBytes(protocol.AppendLenEncBytes(all, attributeClient), host)
	if len(all) > protocol.MaxAttrs {
		return client
	}
	return all
}

// withoutProxys returns the attributes without the proxy's names.
func withoutProxys(attrs protocol.Attrs) (kept protocol.Attrs) {
	for name, value := range attrs.All() {
		switch name {
		case attributeName, attributeVersion, attributeConnection, attributeClient:
		default:
			kept = protocol.AppendLenEncBytes(protocol.AppendLenEncBytes(kept, name), value)
		}
	}
	return kept
}
