package proxy_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seqproxy/internal/child"
	"seqproxy/protocol"
	"seqproxy/test/mysqltest"
)

// proxyProcess is a keys-only proxy in a process of its own.
type proxyProcess struct {
	binary string
	addr   string
	config string
	log    string

	mu  sync.Mutex
	cmd *osexec.Cmd // guarded by mu
}

// startProxyProcess starts a proxy whose sequences are on server, in the schema keys. more ends its
// configuration.
func startProxyProcess(t testing.TB, binary string, server *mysqltest.Server, name string, more ...string) *proxyProcess {
	t.Helper()
	dir := t.TempDir()
	addr, err := child.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	p := &proxyProcess{binary: binary, addr: addr, config: filepath.Join(dir, name+".toml"), log: filepath.Join(dir, name+".log")}
	text := fmt.Sprintf("listen = %q\nadmin_users = [\"root\"]\nhttp.listen = \"\"\nadmin.listen = \"\"\n[[user]]\nname = \"root\"\n[sequence]\nallocate_timeout = \"15s\"\n"+
		"[[sequence.server]]\naddress = %q\nuser = \"root\"\ndatabase = \"keys\"\n", p.addr, server.Addr()) + strings.Join(more, "")
	if err := os.WriteFile(p.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			if b, err := os.ReadFile(p.log); err == nil {
				t.Logf("log of proxy %s:\n%s", name, b[max(0, len(b)-3000):])
			}
		}
	})
	return p
}

// start starts the process and waits until it answers.
func (p *proxyProcess) start() error {
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := osexec.Command(p.binary, "-config", p.config)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return err
	}
	p.mu.Lock()
	p.cmd = cmd
	p.mu.Unlock()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		c, err := dialKeys(p.addr)
		if err == nil {
			c.close()
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("the proxy on %s does not answer: %w", p.addr, err)
		}
	}
}

// kill ends the process as kill -9 does.
func (p *proxyProcess) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // it was killed
	p.cmd = nil
}

// keyConn is a connection that asks for many numbers in one write.
type keyConn struct{ c *protocol.Conn }

func dialKeys(addr string) (*keyConn, error) {
	nc, err := net.DialTimeout("tcp", addr, wireTimeout)
	if err != nil {
		return nil, err
	}
	c, err := protocol.NewConn(nc, 0, 0)
	if err != nil {
		return nil, err
	}
	k := &keyConn{c}
	if err := c.SetDeadline(time.Now().Add(wireTimeout)); err != nil {
		k.close()
		return nil, err
	}
	login := protocol.ClientLogin{User: "root", Collation: 45, Capabilities: protocol.LongFlag | protocol.Transactions | protocol.MultiResults | protocol.DeprecateEOF}
	if _, err := login.Run(c); err != nil {
		k.close()
		return nil, err
	}
	return k, nil
}

func (k *keyConn) close() { _ = k.c.Close() }

// take asks for n numbers in one write and appends them to numbers, also when it fails. refused is
// the proxy's last error; err is the connection's.
func (k *keyConn) take(n int, numbers []uint64) (given []uint64, refused, err error) {
	one := packet(command(protocol.ComQuery, "SELECT NEXTVAL('photos')"))
	if err := k.c.SetDeadline(time.Now().Add(wireTimeout)); err != nil {
		return numbers, nil, err
	}
	if _, err := k.c.Write(bytes.Repeat(one, n)); err != nil {
		return numbers, nil, err
	}
	for range n {
		// The column count, the column, the row, the end.
		for part := range 4 {
			b, err := k.c.ReadPacket(1 << 16)
			if err != nil {
				return numbers, refused, err
			}
			if part == 0 && b[0] == 0xff {
				refused = protocol.ParseServerError(b)
				break
			}
			if part == 2 {
				v, _, _ := protocol.ReadLenEncBytes(b)
				number, err := strconv.ParseUint(string(v), 10, 64)
				if err != nil {
					return numbers, refused, err
				}
				numbers = append(numbers, number)
			}
		}
	}
	return numbers, refused, nil
}

// keyServer starts a server for keys, with the sequence photos.
func keyServer(t testing.TB, binary, create string) *mysqltest.Server {
	t.Helper()
	server := mysqltest.Start(t)
	server.Exec(t, "CREATE DATABASE `keys`")
	p := startProxyProcess(t, binary, server, "creator")
	k, err := dialKeys(p.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer k.close()
	if _, err := k.c.Write(packet(command(protocol.ComQuery, create))); err != nil {
		t.Fatal(err)
	}
	if b, err := k.c.ReadPacket(1 << 16); err != nil || b[0] != 0 {
		t.Fatalf("%s: got %q, %v, want OK", create, b, err)
	}
	p.kill()
	return server
}

// checkNumbers fails the test unless every connection's numbers rise and all are distinct. It
// returns how many there are.
func checkNumbers(t testing.TB, perConnection [][]uint64) int {
	t.Helper()
	var all []uint64
	for i, numbers := range perConnection {
		for j := 1; j < len(numbers); j++ {
			if numbers[j] <= numbers[j-1] {
				t.Errorf("connection %d: number %d came after %d", i, numbers[j], numbers[j-1])
				break
			}
		}
		all = append(all, numbers...)
	}
	slices.Sort(all)
	twice := 0
	for i := 1; i < len(all); i++ {
		if all[i] == all[i-1] {
			if twice++; twice <= 5 {
				t.Errorf("%d was given twice", all[i])
			}
		}
	}
	if twice > 5 {
		t.Errorf("and %d more were given twice", twice-5)
	}
	return len(all)
}

func TestTwoProxyProcessesNeverGiveANumberTwice(t *testing.T) {
	binary := mysqltest.Program(t)
	t.Run("under load", func(t *testing.T) { underLoad(t, binary) })
	t.Run("when a proxy is killed", func(t *testing.T) { whenAProxyIsKilled(t, binary) })
	t.Run("when the sequence server is killed", func(t *testing.T) { whenTheServerIsKilled(t, binary) })
}

func underLoad(t *testing.T, binary string) {
	const connections, batch = 16, 250
	each := 50_000
	if testing.Short() {
		each = 5000
	}
	server := keyServer(t, binary, "CREATE SEQUENCE photos")
	proxies := []*proxyProcess{startProxyProcess(t, binary, server, "a"), startProxyProcess(t, binary, server, "b")}
	numbers := make([][]uint64, connections)
	errs := make([]error, connections)
	begin := time.Now()
	var running sync.WaitGroup
	for i := range connections {
		running.Go(func() {
			k, err := dialKeys(proxies[i%2].addr)
			if err != nil {
				errs[i] = err
				return
			}
			defer k.close()
			numbers[i] = make([]uint64, 0, each)
			for len(numbers[i]) < each && errs[i] == nil {
				var refused error
				numbers[i], refused, err = k.take(batch, numbers[i])
				errs[i] = errors.Join(refused, err)
			}
		})
	}
	running.Wait()
	for i, err := range errs {
		if err != nil {
			t.Errorf("connection %d: %v", i, err)
		}
	}
	if n := checkNumbers(t, numbers); n != connections*each {
		t.Errorf("numbers: got %d, want %d", n, connections*each)
	}
	t.Logf("%d numbers in %v", connections*each, time.Since(begin).Round(time.Millisecond))
}

// tortured takes numbers on many connections, which reconnect when they are cut, while disturb
// runs.
func tortured(t *testing.T, proxies []*proxyProcess, disturb func(given func() int64)) {
	t.Helper()
	const connections = 8
	numbers := make([][]uint64, 0, connections)
	var mu sync.Mutex // guards numbers
	var given atomic.Int64
	stop := make(chan struct{})
	var running sync.WaitGroup
	for i := range connections {
		running.Go(func() {
			for {
				var taken []uint64 // numbers of one connection
				k, err := dialKeys(proxies[i%len(proxies)].addr)
				for err == nil {
					select {
					case <-stop:
						err = errors.New("stop")
						continue
					default:
					}
					before := len(taken)
					taken, _, err = k.take(20, taken) // errors are expected in an outage
					given.Add(int64(len(taken) - before))
				}
				if k != nil {
					k.close()
				}
				mu.Lock()
				numbers = append(numbers, taken)
				mu.Unlock()
				select {
				case <-stop:
					return
				case <-time.After(2 * time.Millisecond):
				}
			}
		})
	}
	disturb(given.Load)
	close(stop)
	running.Wait()
	n := checkNumbers(t, numbers)
	t.Logf("%d numbers on %d connections", n, len(numbers))
}

// awaitNumbers waits until n more numbers were given.
func awaitNumbers(t testing.TB, given func() int64, n int64) {
	t.Helper()
	for until, end := given()+n, time.Now().Add(30*time.Second); given() < until; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("%d numbers are missing of the %d that should have been given by now", until-given(), n)
			return
		}
	}
}

func whenAProxyIsKilled(t *testing.T, binary string) {
	server := keyServer(t, binary, "CREATE SEQUENCE photos CACHE 100")
	proxies := []*proxyProcess{startProxyProcess(t, binary, server, "a"), startProxyProcess(t, binary, server, "b")}
	tortured(t, proxies, func(given func() int64) {
		for range 4 {
			awaitNumbers(t, given, 2000)
			proxies[0].kill()
			awaitNumbers(t, given, 500) // by the other proxy
			if err := proxies[0].start(); err != nil {
				t.Error(err)
				return
			}
		}
		awaitNumbers(t, given, 2000)
	})
}

func whenTheServerIsKilled(t *testing.T, binary string) {
	server := keyServer(t, binary, "CREATE SEQUENCE photos CACHE 100")
	proxies := []*proxyProcess{startProxyProcess(t, binary, server, "a"), startProxyProcess(t, binary, server, "b")}
	tortured(t, proxies, func(given func() int64) {
		for range 3 {
			awaitNumbers(t, given, 2000)
			if err := server.Kill(); err != nil {
				t.Error(err)
				return
			}
			if err := server.Restart(); err != nil {
				t.Error(err)
				return
			}
		}
		awaitNumbers(t, given, 2000)
	})
}
