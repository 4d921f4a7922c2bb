package mysqld

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// Config says how to start a server. Binary and Dir are required.
type Config struct {
	// Binary is the server program: see [Find].
	Binary Binary

	// Dir holds all files of this server: data, log and temporary files. It also holds the socket
	// if the path is short enough. It is created if needed and never removed. Existing data are
	// used.
	Dir string

	// Port is the TCP port on 127.0.0.1. 0 picks a free one, and another one if that is taken
	// meanwhile. A given port that is in use is an error.
	Port int

	// SkipNameResolve starts the server with --skip-name-resolve. Accounts for 127.0.0.1 and '%'
	// then match, and accounts for localhost only over the socket. Without it 127.0.0.1 counts as
	// localhost.
	SkipNameResolve bool

	// ExtraArgs come after all other arguments and override them: "--sql-mode=ANSI".
	ExtraArgs []string

	// ClockLibrary is the path from [ClockLibrary]. With it the server has a wall clock of its own,
	// which [Server.SetClock] sets. At first it equals the machine's.
	ClockLibrary string

	// StartTimeout bounds the wait for the first answer. 0 means 60 seconds: a slow disk and a
	// crash recovery take time.
	StartTimeout time.Duration

	// StopTimeout bounds the wait for an orderly shutdown. After that the server is killed. 0 means
	// 20 seconds.
	StopTimeout time.Duration

	// in addition to the environment of this process
	env []string
	// returns further arguments for one start; may be nil
	startArgs func(ctx context.Context, p paths, args []string) ([]string, error)
}

const (
	defaultStartTimeout = 60 * time.Second
	defaultStopTimeout  = 20 * time.Second
)

func (c Config) validate() error {
	switch {
	case c.Binary.Path == "":
		return fmt.Errorf("no server binary given")
	case c.Dir == "":
		return fmt.Errorf("no directory given")
	case c.Port < 0 || c.Port > 65535:
		return fmt.Errorf("port %d is not in 0..65535", c.Port)
	}
	return nil
}

// args returns the command line of the server without its name.
func (c Config) args(p paths, port int) []string {
	args := append([]string{"--no-defaults"}, c.Binary.baseArgs()...)
	args = append(args,
		"--datadir="+p.data,
		"--tmpdir="+p.tmp,
		"--socket="+p.socket,
		"--pid-file="+p.pidFile,
		"--log-error="+p.log,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--port=%d", port),
		"--max-connections=1000",
	)
	args = append(args, userArgs()...)
	args = append(args, sizeArgs(c.Binary)...)
	if c.SkipNameResolve {
		args = append(args, "--skip-name-resolve")
	}
	if c.Binary.Flavour == MySQL {
		// MySQL checks its compiled-in directory for --secure-file-priv, and ends if it is missing.
		// The X protocol would need a second port.
		args = append(args, "--secure-file-priv=", "--mysqlx=OFF", "--skip-log-bin", "--performance-schema=OFF")
	}
	return append(args, c.ExtraArgs...)
}

// sizeArgs keep a server small. Initialisation and start need the same ones: a redo log of another
// size would be rebuilt at the first start.
func sizeArgs(b Binary) []string {
	args := []string{
		"--innodb-buffer-pool-size=32M",
		"--innodb-log-buffer-size=2M",
		"--key-buffer-size=1M",
	}
	if b.Flavour == MySQL {
		return append(args, "--innodb-redo-log-capacity=32M")
	}
	return append(args, "--innodb-log-file-size=16M", "--aria-pagecache-buffer-size=8M")
}

// userArgs let the server run as root, which it otherwise refuses.
func userArgs() []string {
	if os.Geteuid() == 0 {
		return []string{"--user=root"}
	}
	return nil
}

// lastLines returns the last n non-empty lines of text, for the end of an error message.
func lastLines(text []byte, n int) string {
	var lines []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
