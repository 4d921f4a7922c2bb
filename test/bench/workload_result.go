package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/internal/await"
)

// resultBuffer is the receive buffer for big results.
const resultBuffer = 256 << 10

// A generated row begins with keyBase plus its number, in keyDigits digits.
const (
	keyBase   = 1_000_000_000
	keyDigits = 10
)

// bigResult is a generated result. Each row has width bytes and begins with its number.
type bigResult struct {
	rows, width int
	// slow is the client's reading speed in bytes per second, or 0 for no limit.
	slow int
}

func (b bigResult) query() string {
	return fmt.Sprintf("SELECT CONCAT(%d + seq, _binary'%s') FROM seq_1_to_%d", keyBase, strings.Repeat("x", b.width-keyDigits), b.rows)
}

func (b bigResult) megabytes() float64 { return megabytes(int64(b.rows) * int64(b.width)) }

// run reads the result repeatedly until the time is over. It measures the growth of the target's
// memory.
func (b bigResult) run(ctx context.Context, e environment) (fig figures, err error) {
	c, err := dial(ctx, e.target.addr, benchAccount, resultBuffer)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = c.close() // the first error is the one to tell
		} else if err = c.quit(); err != nil {
			fig = nil
		}
	}()
	if err := c.selectOne(); err != nil {
		return nil, err
	}
	pid := e.target.pid
	if err := resetPeak(pid); err != nil {
		return nil, err
	}
	before, err := peakBytes(pid)
	if err != nil {
		return nil, err
	}
	cpuBefore, err := cpuTime(pid)
	if err != nil {
		return nil, err
	}
	began, read := time.Now(), 0.0
	for read == 0 || time.Since(began) < e.timing.measure && b.slow == 0 {
		if err := b.read(ctx, c); err != nil {
			return nil, err
		}
		read += b.megabytes()
	}
	elapsed := time.Since(began)
	cpuAfter, err := cpuTime(pid)
	if err != nil {
		return nil, err
	}
	peak, err := peakBytes(pid)
	if err != nil {
		return nil, err
	}
	return figures{
		mbPerSecond: read / elapsed.Seconds(),
		cpuPerMB:    microseconds(cpuAfter-cpuBefore) / 1000 / read,
		peakMB:      megabytes(peak),
		growthMB:    megabytes(peak - before),
	}, nil
}

// read asks for the result once and checks every row.
func (b bigResult) read(ctx context.Context, c *client) error {
	// The slowest target so far reads 60 MB/s. One that takes longer than a minute hangs.
	if err := c.extend(4 * ioTimeout); err != nil {
		return err
	}
	if err := c.send(command(mysql.COM_QUERY, b.query())); err != nil {
		return err
	}
	if err := c.readColumns(); err != nil {
		return err
	}
	var (
		key    = strconv.AppendInt(nil, keyBase, 10)
		filler = bytes.Repeat([]byte{'x'}, b.width-keyDigits)
		pace   = pacer{rate: b.slow, began: time.Now()}
	)
	for row := 1; ; row++ {
		p, err := c.readPacket()
		if err != nil {
			return err
		}
		if isEOF(p) || len(p) > 0 && p[0] == mysql.ERR_HEADER {
			if err := checkEOF(p); err != nil {
				return err
			}
			if row-1 != b.rows {
				return fmt.Errorf("result has %d rows, want %d", row-1, b.rows)
			}
			return nil
		}
		value, err := textValue(p)
		if err != nil {
			return err
		}
		increment(key)
		if len(value) != b.width || !bytes.Equal(value[:keyDigits], key) || !bytes.Equal(value[keyDigits:], filler) {
			return fmt.Errorf("row %d: got %d bytes that begin with %q", row, len(value), value[:min(len(value), 2*keyDigits)])
		}
		if err := pace.wait(ctx, len(p)+headerSize); err != nil {
			return err
		}
	}
}

// increment adds 1 to a decimal number in place.
func increment(digits []byte) {
	for i := len(digits) - 1; i >= 0; i-- {
		if digits[i]++; digits[i] <= '9' {
			return
		}
		digits[i] = '0'
	}
}

// pacer limits a reader's rate.
type pacer struct {
	rate     int // bytes a second, 0 for no limit
	began    time.Time
	read     int64
	nextLook int64
}

// wait counts n bytes and sleeps if they came too early.
func (p *pacer) wait(ctx context.Context, n int) error {
	if p.rate == 0 {
		return nil
	}
	if p.read += int64(n); p.read < p.nextLook {
		return nil
	}
	p.nextLook = p.read + resultBuffer
	due := p.began.Add(time.Duration(float64(p.read) / float64(p.rate) * float64(time.Second)))
	if early := time.Until(due); early > 0 {
		if !await.Pause(ctx, early) {
			return errors.Join(errors.New("read slowly"), context.Cause(ctx))
		}
	}
	return nil
}
