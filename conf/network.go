package conf

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// Network is an address, "10.0.0.7" or "::1", or a prefix, "10.0.0.0/8".
type Network string

// Prefix returns the network. An IPv4 network written as IPv6 ("::ffff:10.0.0.7") becomes IPv4. The
// error says what is wrong with the form.
func (n Network) Prefix() (netip.Prefix, error) {
	if !strings.Contains(string(n), "/") {
		addr, err := netip.ParseAddr(string(n))
		if err != nil || addr.Zone() != "" {
			return netip.Prefix{}, errors.New(`must be an address or a network such as "10.0.0.7", "10.0.0.0/8" or "fd00::/8"`)
		}
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(string(n))
	if err != nil {
		return netip.Prefix{}, errors.New(`must be an address or a network such as "10.0.0.7", "10.0.0.0/8" or "fd00::/8"`)
	}
	if addr := prefix.Addr(); addr.Is4In6() {
		const mapped = 96 // bits before the IPv4 address
		if prefix.Bits() < mapped {
			return netip.Prefix{}, errors.New("must be written as IPv4")
		}
		prefix = netip.PrefixFrom(addr.Unmap(), prefix.Bits()-mapped)
	}
	if prefix != prefix.Masked() {
		return netip.Prefix{}, fmt.Errorf("must be an address, or the network %q", prefix.Masked())
	}
	return prefix, nil
}
