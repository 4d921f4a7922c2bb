package kill

import (
	"crypto/rand"
	"encoding/binary"
	"math"
)

// Connection ids of clients are 2^31 and above, so no server has them. They contain the proxy
// instance, so no two proxies have one id: 1 | instance (10 bits) | counter (21 bits).
const (
	proxyIDBit   = 1 << 31
	counterBits  = 21
	instanceBits = 31 - counterBits
)

// Instance is the part that all connection ids of one proxy share.
type Instance uint32

// NewInstance returns a random Instance.
func NewInstance() Instance {
	var b [4]byte
	rand.Read(b[:]) // never fails
	return Instance(binary.LittleEndian.Uint32(b[:]) & (1<<instanceBits - 1))
}

// ID returns the connection id of the session with a serial number.
func (i Instance) ID(serial uint64) uint32 {
	return proxyIDBit | uint32(i)<<counterBits | uint32(serial)&(1<<counterBits-1)
}

// IsProxyID reports whether a connection id was given by a proxy. A smaller one is a server's, and
// so is one that no greeting can hold.
func IsProxyID(id uint64) bool { return id >= proxyIDBit && id <= math.MaxUint32 }

// sameProxy reports whether one proxy gave both ids.
func sameProxy(a, b uint32) bool { return a>>counterBits == b>>counterBits }
