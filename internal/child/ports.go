package child

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// Ports are chosen below the ranges from which Linux (32768-60999) and macOS (49152-65535) take
// source ports. While a program is down, an outgoing connection could take its port from such a
// range. A client that keeps dialling such a port on loopback can even connect to itself. A restart
// would then fail.
const (
	firstPort = 20000
	lastPort  = 32000
	// blockSize is how many of them a process has for itself.
	blockSize = 200
)

// block are the ports of this process. Another process would take the port of a program that is
// down.
var block struct {
	mu    sync.Mutex
	lease net.Listener // on the first port, until the process ends; nil: no block is chosen yet
	first int
	given int // by FreePorts
}

// FreePorts returns n ports on 127.0.0.1 that are free now. No other process gets them from here as
// long as this one runs, and this one gets others first.
func FreePorts(n int) ([]int, error) {
	block.mu.Lock()
	defer block.mu.Unlock()
	if block.lease == nil {
		if err := chooseBlock(); err != nil {
			return nil, err
		}
	}
	var ports []int
	var last error
	for tried := 0; len(ports) < n; tried++ {
		if tried == blockSize {
			return nil, fmt.Errorf("no %d free ports between %d and %d on 127.0.0.1: %w", n, block.first, block.first+blockSize, last)
		}
		port := block.first + 1 + block.given%(blockSize-1)
		block.given++
		ln, err := listen(port)
		if err != nil {
			last = err
			continue
		}
		_ = ln.Close() // only its port was needed
		ports = append(ports, port)
	}
	return ports, nil
}

// chooseBlock takes a block that no other process has.
func chooseBlock() error {
	const blocks = (lastPort - firstPort) / blockSize
	at := rand.IntN(blocks)
	var last error
	for i := range blocks {
		first := firstPort + (at+i)%blocks*blockSize
		ln, err := listen(first)
		if err == nil {
			block.lease, block.first = ln, first
			return nil
		}
		last = err
	}
	return fmt.Errorf("no free block of ports between %d and %d on 127.0.0.1: %w", firstPort, lastPort, last)
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

func listen(port int) (net.Listener, error) {
	return net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
}
