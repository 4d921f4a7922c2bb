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

// Server is a running private server. Any goroutine may call its methods. Only one Stop, Kill or
// Restart runs at a time.
type Server struct {
	cfg   Config
	paths paths
	port  int

	change sync.Mutex // locked by Stop, Kill and Restart, before mu
	mu     sync.Mutex
	proc   *process // guarded by mu; never nil
}

// errPortInUse says that a start failed only because of the port.
var errPortInUse = errors.New("port is in use")

// freePortTries bounds the number of ports to try.
const freePortTries = 10

// Start starts a server and returns once it answers a query. ctx bounds the start only: the server
// lives until Stop or Kill, or until this process ends. A failed start leaves no process behind,
// and its error ends with the last lines of the server's log.
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

// startFirst starts the server on the configured port, or on free ports until one is not taken
// before the server uses it.
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

// bindFailed reports whether the server ended because of its port, judging by its log. MariaDB and
// MySQL write the first text. The number after "Address already in use" depends on the system.
func bindFailed(log []byte) bool {
	return bytes.Contains(log, []byte("Bind on TCP/IP port")) && bytes.Contains(log, []byte("already in use"))
}

// Stop ends the server in order with SIGTERM and waits for it. If ctx is done or StopTimeout has
// passed, it kills the server and returns an error. It does nothing if the server is not running.
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

// Kill ends the server at once with SIGKILL, like a crash, and waits until it has ended. Restart
// starts it again on the same data.
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

// Restart stops a running server and starts it again with the same port, data and arguments. It
// returns once the server answers a query. If the port is taken meanwhile, it tries until ctx is
// done or StartTimeout has passed.
func (s *Server) Restart(ctx context.Context) error {
	s.change.Lock()
	defer s.change.Unlock()
	return s.restart(ctx)
}

// RestartWith is Restart with more arguments after ExtraArgs, for this start only.
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

// Done returns a channel that is closed when the present process has ended, by itself or by Stop,
// Kill or Restart. Each Restart makes a new channel.
func (s *Server) Done() <-chan struct{} {
	return s.process().done
}

// Wait blocks until the present process has ended. It returns nil after an orderly shutdown, else
// the status and the last lines of its log.
func (s *Server) Wait() error {
	proc := s.process()
	<-proc.done
	if proc.err == nil {
		return nil
	}
	return fmt.Errorf("%s ended: %w; end of %s:\n%s",
		s.cfg.Binary, proc.err, s.paths.log, lastLines(s.paths.logSince(proc.logFrom), 12))
}

// Crashed returns nil while the server runs, and after Stop, Kill or Restart have ended it.
// Otherwise it returns the error of Wait, or one that says that the server ended in order without a
// request.
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

// Running reports whether the process exists now.
func (s *Server) Running() bool { return s.process().running() }

// Addr returns the TCP address, "127.0.0.1:23017". It stays the same over Restart.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Port returns the TCP port of Addr.
func (s *Server) Port() int { return s.port }

// Socket returns the path of the Unix socket. It stays the same over Restart.
func (s *Server) Socket() string { return s.paths.socket }

// Dir returns Config.Dir as an absolute path.
func (s *Server) Dir() string { return s.paths.dir }

// PID returns the id of the present or last process.
func (s *Server) PID() int { return s.process().cmd.Process.Pid }

// Flavour returns the server's flavour.
func (s *Server) Flavour() Flavour { return s.cfg.Binary.Flavour }

// Version returns the server's version as three numbers, "10.11.6".
func (s *Server) Version() string { return s.cfg.Binary.Version }

// Binary returns the server's program.
func (s *Server) Binary() Binary { return s.cfg.Binary }

// LogFile returns the path of the server's error log. Restarts append to it.
func (s *Server) LogFile() string { return s.paths.log }

// DataDir returns the data directory in Dir.
func (s *Server) DataDir() string { return s.paths.data }

// LogTail returns the last n lines in the error log of the present or last process.
func (s *Server) LogTail(n int) string {
	return lastLines(s.paths.logSince(s.process().logFrom), n)
}
