package conf

import (
	"errors"
	"net"
	"path/filepath"
	"strconv"
	"strings"
)

// Address is the address of a backend: "db1:3306", "[::1]:3306" or "unix:/run/mysqld/mysqld.sock".
type Address string

// unixPrefix begins an Address that is the path of a socket.
const unixPrefix = "unix:"

// Split returns the arguments for net.Dial: "tcp" and "db1:3306", or "unix" and the path.
func (a Address) Split() (network, address string) {
	if path, ok := strings.CutPrefix(string(a), unixPrefix); ok {
		return "unix", path
	}
	return "tcp", string(a)
}

// isLocal reports whether data sent to the address stays on this machine. It resolves no name other
// than localhost.
func (a Address) isLocal() bool {
	network, address := a.Split()
	host, _, err := net.SplitHostPort(address)
	return network == "unix" || err == nil && isLoopback(host)
}

// check returns what is wrong with the form of the address.
func (a Address) check() error {
	network, address := a.Split()
	if network == "unix" {
		if !filepath.IsAbs(address) {
			return errors.New("must be unix: and an absolute path")
		}
		return nil
	}
	host, err := checkHostPort(address, 1)
	if err != nil {
		return errors.New("must be host:port or unix:/path/to/socket")
	}
	if host == "" {
		return errors.New("must name a host before the port")
	}
	return nil
}

// checkHostPort splits "host:port". The port must be a number from lowest to 65535.
func checkHostPort(address string, lowest int) (host string, err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return "", err
	}
	if n < lowest || n > 65535 || strconv.Itoa(n) != port {
		return "", errors.New("port out of range")
	}
	return host, nil
}

// isLoopback reports whether only this machine can reach the host.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// sameEndpoint reports whether dialling node would reach the proxy's own listener at listen. It
// resolves no names: it finds loops made by copy and paste.
func sameEndpoint(node Address, listen string) bool {
	network, address := node.Split()
	if network != "tcp" {
		return false
	}
	nodeHost, nodePort, err1 := net.SplitHostPort(address)
	host, port, err2 := net.SplitHostPort(listen)
	if err1 != nil || err2 != nil || nodePort != port || port == "0" {
		return false
	}
	return nodeHost == host || isLoopback(nodeHost) && (isEverywhere(host) || isLoopback(host) && (host == "localhost" || nodeHost == "localhost"))
}

// isEverywhere reports whether a listener at the host has all addresses of the machine.
func isEverywhere(host string) bool { return host == "" || net.ParseIP(host).IsUnspecified() }

// sameListener reports whether two listeners cannot have these addresses at the same time. It
// resolves no names.
func sameListener(a, b string) bool {
	hostA, portA, err1 := net.SplitHostPort(a)
	hostB, portB, err2 := net.SplitHostPort(b)
	if err1 != nil || err2 != nil || portA != portB || portA == "0" {
		return false
	}
	return isEverywhere(hostA) || isEverywhere(hostB) || sameEndpoint(Address(a), b)
}
