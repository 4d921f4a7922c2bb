package torture

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// maxSequenceConns is how many connections to a sequence server a proxy keeps.
	maxSequenceConns = 8
	// maxThreads is far above the runtime's need on any machine that runs this, and below a leak of
	// threads.
	maxThreads = 64
	// maxFiles is far above what a proxy has open besides its TCP connections: state file with
	// lock, log, poller, timers.
	maxFiles = 40
	// maxGoroutines bounds those of a proxy without clients: listener, poller, followers, pools,
	// TLS files. It leaves out the one of each connection to a sequence server, because the
	// connections are counted.
	maxGoroutines = 40
	// keptFor is longer than a proxy keeps an idle goroutine for the next client.
	keptFor = time.Second
)

// checkLeaks checks the proxies after all clients have gone: no connection to a client or shard may
// remain, nor a goroutine that serves one. It ends the proxies, because they print their goroutines
// on SIGQUIT.
func checkLeaks(ctx context.Context, w *world) (wrong []string) {
	time.Sleep(keptFor)
	for _, p := range w.proxies {
		err := eventually(ctx, healWithin, func() error { return w.leftovers(p) })
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("LEAK: proxy %d: %v", p.number, err))
		}
		run, _ := p.current()
		if err := p.end(syscall.SIGQUIT, 5*time.Second); err != nil {
			wrong = append(wrong, err.Error())
			continue
		}
		if err := goroutines(run.Log); err != nil {
			wrong = append(wrong, fmt.Sprintf("LEAK: proxy %d: %v", p.number, err))
		}
	}
	return wrong
}

// leftovers is an error if a proxy without clients has more than it should.
func (w *world) leftovers(p *proxy) error {
	proc := fmt.Sprintf("/proc/%d", p.pid())
	threads, err := os.ReadDir(proc + "/task")
	if err != nil {
		return err
	}
	if len(threads) > maxThreads {
		return fmt.Errorf("%d threads", len(threads))
	}
	sockets, all, err := tcpSockets(proc)
	if err != nil {
		return err
	}
	if others := all - len(sockets); others > maxFiles {
		return fmt.Errorf("%d files are open beside %d TCP sockets", others, len(sockets))
	}
	sequences := 0
	members := make(map[string]bool)
	for _, s := range w.nodes {
		members[w.links[linkPart(p.number, s)].Addr()] = true
	}
	for _, s := range sockets {
		switch {
		case s.listens:
		case s.local == p.addr:
			return fmt.Errorf("the connection of a client that has gone is left, from %s", s.remote)
		case members[s.remote]:
			sequences++
		default:
			for _, shard := range w.shards {
				if s.remote == w.links[linkPart(p.number, shard)].Addr() {
					return fmt.Errorf("a connection to %s is left, though there is no client", shard.name)
				}
			}
		}
	}
	if sequences > maxSequenceConns*len(members) {
		return fmt.Errorf("%d connections to the sequence servers", sequences)
	}
	return nil
}

// socket is a TCP socket of a process.
type socket struct {
	local, remote string
	listens       bool
}

// tcpSockets lists the open TCP sockets of the process whose directory is proc, those of IPv6 by
// their IPv4 address, and counts all of its open files.
func tcpSockets(proc string) (found []socket, files int, err error) {
	descriptors, err := os.ReadDir(proc + "/fd")
	if err != nil {
		return nil, 0, err
	}
	inodes := make(map[string]bool)
	for _, d := range descriptors {
		if to, err := os.Readlink(filepath.Join(proc, "fd", d.Name())); err == nil && strings.HasPrefix(to, "socket:[") {
			inodes[strings.Trim(to, "socket:[]")] = true
		}
	}
	for _, table := range []string{"/net/tcp", "/net/tcp6"} {
		f, err := os.Open(proc + table)
		if err != nil {
			continue // no IPv6 on this machine
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			// sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode
			columns := strings.Fields(lines.Text())
			if len(columns) < 10 || !inodes[columns[9]] {
				continue
			}
			found = append(found, socket{local: hexAddr(columns[1]), remote: hexAddr(columns[2]), listens: columns[3] == "0A"})
		}
		err = lines.Err()
		_ = f.Close()
		if err != nil {
			return nil, 0, err
		}
	}
	return found, len(descriptors), nil
}

// hexAddr reads "0100007F:0CEA", the address in the machine's (little-endian) order.
func hexAddr(text string) string {
	host, port, _ := strings.Cut(text, ":")
	ip, err := hex.DecodeString(host)
	number, errPort := strconv.ParseUint(port, 16, 16)
	if err != nil || errPort != nil || len(ip) < 4 {
		return text
	}
	last := ip[len(ip)-4:] // of an IPv6 address with an IPv4 address in it
	return net.JoinHostPort(net.IPv4(last[3], last[2], last[1], last[0]).String(), strconv.FormatUint(number, 10))
}

var (
	goroutine = regexp.MustCompile(`(?m)^goroutine \d+ `)
	madeBy    = regexp.MustCompile(`(?m)^created by (\S+)`)
)

// watcher starts the goroutine that the driver has for each connection.
const watcher = "github.com/go-sql-driver/mysql.(*mysqlConn).startWatcher"

// goroutines checks the stacks that a process printed when SIGQUIT ended it.
func goroutines(log string) error {
	text, err := os.ReadFile(log)
	if err != nil {
		return err
	}
	starts := goroutine.FindAllIndex(text, -1)
	if len(starts) == 0 {
		return fmt.Errorf("no stacks in %s", log)
	}
	made, sum := make(map[string]int), 0
	for i, at := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		stack := string(text[at[0]:end])
		if strings.Contains(stack, "proxy.(*session).") {
			return fmt.Errorf("a goroutine serves a client that has gone:\n%s", stack)
		}
		by := "the runtime"
		if found := madeBy.FindStringSubmatch(stack); found != nil {
			by = found[1]
		}
		if by != watcher {
			made[by]++
			sum++
		}
	}
	if sum > maxGoroutines {
		return fmt.Errorf("%d goroutines without a client: %v", sum, made)
	}
	return nil
}
