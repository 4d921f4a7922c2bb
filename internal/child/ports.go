package child

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports are chosen below the ranges from which Linux (32768-60999) and macOS (49152-65535) take
// source ports. While a program is down, an outgoing connection could take its port from such a
// range. A client that keeps dialling such a port on loopback can even connect to itself. A restart
// would then fail.
const (
	firstPort = 20000
	lastPort  = 32000
)

// FreePorts returns n ports on 127.0.0.1 that are free now.
func FreePorts(n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		ln, err := listen()
		if err != nil {
			return nil, err
		}
		defer ln.Close() //nolint:errcheck // only its port was needed
		ports[i] = ln.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}

// FreePort is FreePorts for one port.
func FreePort() (int, error) {
	ports, err := FreePorts(1)
	if err != nil {
		return 0, err
	}
	return ports[0], nil
}

// FreeAddr returns a loopback address with such a port.
func FreeAddr() (string, error) {
	port, err := FreePort()
	return fmt.Sprintf("127.0.0.1:%d", port), err
}

// listen listens on one of the ports in the range.
func listen() (net.Listener, error) {
	var last error
	for range 100 {
		ln, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", firstPort+rand.IntN(lastPort-firstPort)))
		if err == nil {
			return ln, nil
		}
		last = err
	}
	return nil, fmt.Errorf("no free port between %d and %d on 127.0.0.1: %w", firstPort, lastPort, last)
}
