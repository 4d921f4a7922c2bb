package main

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// numbersAt serves numbers in the fewest packets there are: an OK with one more than the last as its insert id, in two pieces. It answers no more than limit requests.
func numbersAt(t *testing.T, limit uint64) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var last atomic.Uint64
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { // ends when the client closes
				defer c.Close() //nolint:errcheck // nothing is lost
				for buf := make([]byte, 64); ; {
					if n, err := c.Read(buf); err != nil || n < 5 || buf[4] == quitPacket[4] {
						return
					}
					v := last.Add(1)
					if v > limit {
						continue
					}
					answer := packet(1, []byte{0, 1, 0xfe, byte(v), byte(v >> 8), byte(v >> 16), byte(v >> 24), 0, 0, 0, 0, 2, 0, 0, 0})
					for _, piece := range [][]byte{answer[:6], answer[6:]} {
						if _, err := c.Write(piece); err != nil {
							return
						}
					}
				}
			}()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-served })
	return l.Addr().String()
}

// members are connections to such a server.
func members(t *testing.T, addr string, n int) (workers []worker) {
	t.Helper()
	for range n {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		c := &client{net: nc, buf: make([]byte, queryBuffer), forget: func() bool { return true }}
		workers = append(workers, &numberWorker{c: c, packet: command(3, "SELECT NEXTVAL('photos')"), receive: numberFromOK})
	}
	t.Cleanup(func() {
		if err := closeWorkers(workers); err != nil {
			t.Error(err)
		}
	})
	return workers
}

func TestACrowdTakesEachAnswerOnce(t *testing.T) {
	workers := members(t, numbersAt(t, 1<<31), 8)
	fig, err := loadCrowd(t.Context(), &target{pid: os.Getpid()}, timing{warm: 20 * time.Millisecond, measure: 100 * time.Millisecond}, workers)
	if err != nil {
		t.Fatal(err)
	}
	var given numberSet
	if err := given.addAll(numbersOf(workers)); err != nil {
		t.Error(err)
	}
	all, highest := 0, uint64(0)
	for i, numbers := range numbersOf(workers) {
		if len(numbers) == 0 {
			t.Fatalf("connection %d was never served", i)
		}
		all += len(numbers)
		highest = max(highest, numbers[len(numbers)-1])
	}
	if uint64(all) != highest {
		t.Errorf("%d numbers were received of %d given", all, highest)
	}
	if counted := fig[opsPerSecond] * 0.1; counted <= 0 || counted > float64(all) {
		t.Errorf("counted %.0f operations of %d", counted, all)
	}
	if fig[p50] <= 0 || fig[p99] < fig[p50] {
		t.Errorf("p50 is %v us and p99 %v us", fig[p50], fig[p99])
	}
}

func TestACrowdEndsWithItsContextAndWithAnError(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(100*time.Millisecond, func() { cancel(errWorker) })
	_, err := loadCrowd(ctx, &target{pid: os.Getpid()}, timing{measure: time.Minute}, members(t, numbersAt(t, 0), 3)) // which answers nothing
	if !errors.Is(err, errWorker) {
		t.Errorf("got %v, want the cause of the context's end", err)
	}
	workers := members(t, numbersAt(t, 1<<31), 3)
	workers[1].(*numberWorker).receive = func(c *client) (uint64, error) {
		v, err := numberFromOK(c)
		if v > 20 {
			err = errors.Join(err, errors.New(strconv.FormatUint(v, 10)+" is too many"))
		}
		return v, err
	}
	_, err = loadCrowd(t.Context(), &target{pid: os.Getpid()}, timing{measure: time.Minute}, workers)
	if err == nil || !strings.Contains(err.Error(), "connection 1") || !strings.Contains(err.Error(), "too many") {
		t.Errorf("got %v, want the error of connection 1", err)
	}
}
