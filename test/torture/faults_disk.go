package torture

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"seqproxy/internal/await"
)

func (w *world) smallDisks() bool { return len(w.disks) == len(w.proxies) }

// fillDisk leaves no space for the state of a proxy. The proxy may give cached numbers, and
// reserves nothing until there is space, also if it is started anew meanwhile.
func fillDisk(ctx context.Context, n *nemesis, rng *rand.Rand) error {
	p := n.someProxy(rng)
	heal, err := n.hurt("full disk", proxyPart(p.number))
	if err != nil {
		return err
	}
	defer heal()
	path := filepath.Join(p.state, "filler")
	if err := fill(path); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	if rng.IntN(3) == 0 {
		err = p.crashed()
		if err == nil {
			err = p.end(syscall.SIGKILL, 5*time.Second)
		}
		if err == nil {
			err = p.start(context.WithoutCancel(ctx))
		}
	}
	await.Pause(ctx, between(rng, 300*time.Millisecond, 3*time.Second))
	return errors.Join(err, os.Remove(path))
}

// fill writes a file until the disk is full.
func fill(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("fill the disk: %w", err)
	}
	defer f.Close() //nolint:errcheck // it is removed
	for _, size := range []int{4096, 1} {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			return fmt.Errorf("fill the disk: %w", err)
		}
	}
	return nil
}
