package kill

import (
	"crypto/rand"
	"encoding/binary"
	"math"
)

// Connection ids of clients are 2^31 and above, so that they are no server's, and name the
// proxy instance, so that no other proxy takes one for its own:
// 1 | instance (10 bits) | counter (21 bits).
const (
	proxyIDBit   = 1 << 31
	counterBits  = 21
	instanceBits = 31 - counterBits
)

// Instance is what the connection ids of one proxy have in common.
type Instance uint32

// NewInstance chooses one by chance.
func NewInstance() Instance {
	var b [4]byte
	rand.Read(b[:]) // never fails
	return Instance(binary.LittleEndian.Uint32(b[:]) & (1<<instanceBits - 1))
}

// ID is what the client of the session with a serial number gets to know.
func (i Instance) ID(serial uint64) uint32 {
	return proxyIDBit | uint32(i)<<counterBits | uint32(serial)&(1<<counterBits-1)
}

// IsProxyID says whether a connection id was given by a proxy. A smaller one is a
// server's, and so is a larger one than a greeting can tell.
func IsProxyID(id uint64) bool { return id >= proxyIDBit && id <= math.MaxUint32 }

// sameProxy says whether two such ids were given by one proxy.
func sameProxy(a, b uint32) bool { return a>>counterBits == b>>counterBits }
