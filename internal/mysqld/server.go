package mysqld

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"seqproxy/internal/child"
)

// Server is a running private server. Its methods may be called from any
// goroutine; Stop, Kill and Restart take their turn.
type Server struct {
	cfg   Config
	paths paths
	port  int

	change sync.Mutex // held by Stop, Kill and Restart; taken before mu
	mu     sync.Mutex
	proc   *process // guarded by mu; never nil
}

// errPortInUse is a start that failed because of the port alone.
var errPortInUse = errors.New("port is in use")

// freePortTries bounds the retries with another port.
const freePortTries = 10

// Start starts a server and returns once it answers a query. ctx bounds the
// start only: the server lives until Stop or Kill, or until this process ends.
// A start that fails leaves no process behind and ends its error with the last
// lines of the server's log.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	p, err := newPaths(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	if cfg.ClockLibrary != "" {
		cfg.env = slices.Concat(cfg.env, clockEnv(cfg.ClockLibrary, p.clock))
		err = p.writeClock(0)
	}
	s := &Server{cfg: cfg, paths: p, port: cfg.Port}
	if err == nil && !isInitialised(p.data) {
		err = Init(ctx, cfg.Binary, p.data)
	}
	if err == nil {
		err = s.startFirst(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, p.removeSocketDir())
	}
	return s, nil
}

// startFirst starts the server on the port asked for, or on free ports until
// one is not taken between our look and the server's bind.
func (s *Server) startFirst(ctx context.Context) error {
	if s.cfg.Port != 0 {
		return s.launch(ctx)
	}
	for try := 1; ; try++ {
		var err error
		if s.port, err = child.FreePort(); err != nil {
			return err
		}
		if err = s.launch(ctx); !errors.Is(err, errPortInUse) || try == freePortTries {
			return err
		}
	}
}

// launch starts the process on s.port and waits until it answers.
func (s *Server) launch(ctx context.Context) error {
	fail := func(proc *process, err error) error {
		text := s.paths.logSince(proc.logFrom)
		if bindFailed(text) {
			err = fmt.Errorf("127.0.0.1:%d: %w", s.port, errPortInUse)
		}
		return fmt.Errorf("start %s: %w; end of %s:\n%s", s.cfg.Binary, err, s.paths.log, lastLines(text, 12))
	}

	if err := s.paths.ensureSocketDir(); err != nil {
		return fmt.Errorf("start %s: %w", s.cfg.Binary, err)
	}
	args := s.cfg.args(s.paths, s.port)
	if s.cfg.startArgs != nil {
		more, err := s.cfg.startArgs(ctx, s.paths, args)
		if err != nil {
			return fmt.Errorf("start %s: %w", s.cfg.Binary, err)
		}
		args = append(args, more...)
	}
	proc, err := startProcess(s.cfg.Binary.Path, args, s.cfg.env, s.paths)
	if err != nil {
		return fmt.Errorf("start %s: %w", s.cfg.Binary, err)
	}
	if err := awaitReady(ctx, proc, s.paths.socket, cmp.Or(s.cfg.StartTimeout, defaultStartTimeout)); err != nil {
		killErr := proc.signal(syscall.SIGKILL)
		<-proc.done
		return fail(proc, errors.Join(err, killErr))
	}
	s.mu.Lock()
	s.proc = proc
	s.mu.Unlock()
	return nil
}

// bindFailed tells from the log whether the server ended because of its port.
// The first text is MariaDB's and MySQL's; the number behind "Address already in
// use" differs between systems.
func bindFailed(log []byte) bool {
	return bytes.Contains(log, []byte("Bind on TCP/IP port")) && bytes.Contains(log, []byte("already in use"))
}

// Stop ends the server in order with SIGTERM and waits for it. When ctx ends or
// StopTimeout has passed the server is killed; that is an error, but it is gone
// all the same. Stop of a server that is not running does nothing.
func (s *Server) Stop(ctx context.Context) error {
	s.change.Lock()
	defer s.change.Unlock()
	return errors.Join(s.stop(ctx), s.paths.removeSocketDir())
}

func (s *Server) stop(ctx context.Context) error {
	proc := s.process()
	if !proc.running() {
		return nil
	}
	if err := proc.signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop %s: %w", s.cfg.Binary, err)
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(s.cfg.StopTimeout, defaultStopTimeout))
	defer cancel()
	select {
	case <-proc.done:
		return nil
	case <-ctx.Done():
	}
	if err := proc.signal(syscall.SIGKILL); err != nil {
		return fmt.Errorf("stop %s: %w", s.cfg.Binary, err)
	}
	<-proc.done
	return fmt.Errorf("stop %s: killed, it did not end in time: %w; end of %s:\n%s",
		s.cfg.Binary, ctx.Err(), s.paths.log, lastLines(s.paths.logSince(proc.logFrom), 5))
}

// Kill ends the server at once with SIGKILL, as a crash would, and waits until
// it is gone. Restart starts it again on the same data.
func (s *Server) Kill() error {
	s.change.Lock()
	defer s.change.Unlock()
	proc := s.process()
	if err := proc.signal(syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill %s: %w", s.cfg.Binary, err)
	}
	<-proc.done
	return nil
}

// Restart stops the server if it runs and starts it again with the same port,
// data and arguments. It returns once the server answers a query. If the port
// is taken by somebody else meanwhile, it is tried again until ctx ends or
// StartTimeout has passed.
func (s *Server) Restart(ctx context.Context) error {
	s.change.Lock()
	defer s.change.Unlock()
	return s.restart(ctx)
}

// RestartWith is Restart with more arguments behind ExtraArgs, for this start alone.
func (s *Server) RestartWith(ctx context.Context, moreArgs ...string) error {
	s.change.Lock()
	defer s.change.Unlock()
	usual := s.cfg.ExtraArgs
	defer func() { s.cfg.ExtraArgs = usual }()
	s.cfg.ExtraArgs = slices.Concat(usual, moreArgs)
	return s.restart(ctx)
}

func (s *Server) restart(ctx context.Context) error {
	if err := s.stop(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(s.cfg.StartTimeout, defaultStartTimeout))
	defer cancel()
	for {
		err := s.launch(ctx)
		if err == nil || !errors.Is(err, errPortInUse) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (s *Server) process() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc
}

// Done returns a channel that is closed when the process that runs now is gone,
// by itself or by Stop, Kill or Restart. Each Restart has a new channel.
func (s *Server) Done() <-chan struct{} {
	return s.process().done
}

// Wait blocks until the process that runs now is gone and says how it ended:
// nil after an orderly shutdown, else the status and the last lines of its log.
func (s *Server) Wait() error {
	proc := s.process()
	<-proc.done
	if proc.err == nil {
		return nil
	}
	return fmt.Errorf("%s ended: %w; end of %s:\n%s",
		s.cfg.Binary, proc.err, s.paths.log, lastLines(s.paths.logSince(proc.logFrom), 12))
}

// Crashed is nil while the server runs and after it was ended by Stop, Kill or
// Restart. Otherwise it is what Wait says, or says that the server ended in order
// though nobody asked.
func (s *Server) Crashed() error {
	proc := s.process()
	if proc.running() || proc.wanted.Load() {
		return nil
	}
	if err := s.Wait(); err != nil {
		return err
	}
	return fmt.Errorf("%s ended by itself, in order; end of %s:\n%s", s.cfg.Binary, s.paths.log, s.LogTail(5))
}

// Running tells whether the process is there now.
func (s *Server) Running() bool { return s.process().running() }

// Addr is the TCP address, "127.0.0.1:23017". It stays the same over Restart.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Port is the TCP port of Addr.
func (s *Server) Port() int { return s.port }

// Socket is the path of the Unix socket. It stays the same over Restart.
func (s *Server) Socket() string { return s.paths.socket }

// Dir is the directory of Config.Dir as an absolute path.
func (s *Server) Dir() string { return s.paths.dir }

// PID is the process id of the server that runs now or ran last.
func (s *Server) PID() int { return s.process().cmd.Process.Pid }

// Flavour is the family of the server.
func (s *Server) Flavour() Flavour { return s.cfg.Binary.Flavour }

// Version is the server's version as three numbers, "10.11.6".
func (s *Server) Version() string { return s.cfg.Binary.Version }

// Binary is the program that runs.
func (s *Server) Binary() Binary { return s.cfg.Binary }

// LogFile is the path of the server's error log. Restarts append to it.
func (s *Server) LogFile() string { return s.paths.log }

// DataDir is the data directory inside Dir.
func (s *Server) DataDir() string { return s.paths.data }

// LogTail returns the last n lines that the process that runs now, or ran last,
// wrote to its error log.
func (s *Server) LogTail(n int) string {
	return lastLines(s.paths.logSince(s.process().logFrom), n)
}
