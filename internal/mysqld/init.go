package mysqld

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Init makes a new data directory at dataDir for the server b. The directory must be missing or
// empty. It appears complete or not at all, so an interrupted call can be repeated. Root has no
// password on localhost and 127.0.0.1. There are no anonymous users and no test schema. A data
// directory may be copied while no server runs on it.
//
// [Start] calls Init itself. Use Init to make a template.
func Init(ctx context.Context, b Binary, dataDir string) error {
	if err := refuseUsed(dataDir); err != nil {
		return fmt.Errorf("initialise %s: %w", dataDir, err)
	}
	if err := os.MkdirAll(filepath.Dir(dataDir), 0o700); err != nil {
		return fmt.Errorf("initialise data directory: %w", err)
	}
	work, err := os.MkdirTemp(filepath.Dir(dataDir), "init-")
	if err != nil {
		return fmt.Errorf("initialise data directory: %w", err)
	}
	defer os.RemoveAll(work) //nolint:errcheck // a leftover beside the result does no harm

	fresh := filepath.Join(work, "data")
	cmd, err := initCommand(ctx, b, work, fresh)
	if err != nil {
		return fmt.Errorf("initialise data directory: %w", err)
	}
	if out, err := runInit(cmd); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("initialise data directory with %s: %w: %s", cmd.Path, err, complaint(out))
	}
	// Rename fails if an empty directory is in the way.
	if err := os.Remove(dataDir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("initialise data directory: %w", err)
	}
	if err := os.Rename(fresh, dataDir); err != nil {
		return fmt.Errorf("initialise data directory: %w", err)
	}
	return nil
}

// complaint returns the part of a failed command's output that says why. MariaDB's script ends with
// a page of general advice.
func complaint(out []byte) string {
	var errs []string
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "ERROR") {
			errs = append(errs, strings.TrimSpace(line))
		}
	}
	if len(errs) > 0 {
		return strings.Join(errs, "\n")
	}
	return lastLines(out, 12)
}

// refuseUsed returns an error if dataDir is not empty: the data may matter.
func refuseUsed(dataDir string) error {
	entries, err := os.ReadDir(dataDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("directory is not empty (it holds %q)", entries[0].Name())
	}
	return nil
}

// isInitialised reports whether dataDir has the system schema.
func isInitialised(dataDir string) bool {
	info, err := os.Stat(filepath.Join(dataDir, "mysql"))
	return err == nil && info.IsDir()
}

// initCommand returns the command that fills dataDir. MySQL has an option for that. MariaDB has a
// script that starts the server in bootstrap mode.
func initCommand(ctx context.Context, b Binary, work, dataDir string) (*exec.Cmd, error) {
	if err := os.Mkdir(dataDir, 0o700); err != nil {
		return nil, err
	}
	args := append([]string{"--no-defaults"}, b.baseArgs()...)
	// When a server starts, it removes all files that look like temporary tables from its temporary
	// directory. In /tmp they could be another server's.
	tmp := filepath.Join(work, "tmp")
	if err := os.Mkdir(tmp, 0o700); err != nil {
		return nil, err
	}
	args = append(args, "--datadir="+dataDir, "--tmpdir="+tmp)
	args = append(args, userArgs()...)

	if b.Flavour == MySQL {
		// MySQL makes root@localhost only. A server that does not resolve names never finds that
		// account for a TCP connection.
		statements := "CREATE USER root@'127.0.0.1' IDENTIFIED BY '';\n" +
			"GRANT ALL PRIVILEGES ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;\n" +
			"GRANT PROXY ON ''@'' TO root@'127.0.0.1' WITH GRANT OPTION;\n"
		initFile := filepath.Join(work, "init.sql")
		if err := os.WriteFile(initFile, []byte(statements), 0o600); err != nil {
			return nil, err
		}
		args = append(args, "--initialize-insecure", "--init-file="+initFile, "--secure-file-priv=", "--log-error-verbosity=2")
		args = append(args, sizeArgs(b)...)
		return exec.CommandContext(ctx, b.Path, args...), nil
	}

	script, err := b.companion("mariadb-install-db", "mysql_install_db")
	if err != nil {
		return nil, err
	}
	// --force: a machine may have a name that does not resolve. --skip-test-db also leaves out the
	// anonymous users, which would take precedence over 'app'@'%' for connections from localhost.
	args = append(args, "--auth-root-authentication-method=normal", "--skip-test-db", "--force")
	args = append(args, sizeArgs(b)...)
	return exec.CommandContext(ctx, script, args...), nil
}

// runInit runs cmd to its end and returns its output. If the context ends, it kills the command
// with all child processes.
func runInit(cmd *exec.Cmd) ([]byte, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	// A child that outlives the script would keep the pipe open.
	cmd.WaitDelay = 5 * time.Second

	// See process.run for the reason.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Run()
	return out.Bytes(), err
}
