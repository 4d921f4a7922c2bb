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

// Init makes a new data directory at dataDir for the server b. The directory
// must not exist or be empty; it appears complete or not at all, so a call that
// was interrupted can be repeated. Root has no password on localhost and
// 127.0.0.1; there are no anonymous users and no test schema. A data directory
// may be copied while no server runs on it.
//
// [Start] calls Init by itself; it is for those who keep a template.
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
	// An empty directory in the way would make the rename fail.
	if err := os.Remove(dataDir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("initialise data directory: %w", err)
	}
	if err := os.Rename(fresh, dataDir); err != nil {
		return fmt.Errorf("initialise data directory: %w", err)
	}
	return nil
}

// complaint picks from the output of a failed command what says why. MariaDB's
// script ends with a page of general advice.
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

// refuseUsed is an error when dataDir holds anything: it might be somebody's data.
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

// isInitialised tells whether dataDir holds the system schema.
func isInitialised(dataDir string) bool {
	info, err := os.Stat(filepath.Join(dataDir, "mysql"))
	return err == nil && info.IsDir()
}

// initCommand is the command that fills dataDir. MySQL does it itself; MariaDB
// has a script that starts the server in bootstrap mode.
func initCommand(ctx context.Context, b Binary, work, dataDir string) (*exec.Cmd, error) {
	if err := os.Mkdir(dataDir, 0o700); err != nil {
		return nil, err
	}
	args := append([]string{"--no-defaults"}, b.baseArgs()...)
	// A server removes what looks like temporary tables of an earlier run from
	// its temporary directory when it starts: in /tmp these would be another
	// server's.
	tmp := filepath.Join(work, "tmp")
	if err := os.Mkdir(tmp, 0o700); err != nil {
		return nil, err
	}
	args = append(args, "--datadir="+dataDir, "--tmpdir="+tmp)
	args = append(args, userArgs()...)

	if b.Flavour == MySQL {
		// MySQL makes root@localhost only, which a server that does not
		// resolve names never finds for a connection over TCP.
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
	// --force: a machine whose own name does not resolve is no reason to
	// stop. --skip-test-db also leaves out the anonymous users, which would
	// win over 'app'@'%' for every connection from localhost.
	args = append(args, "--auth-root-authentication-method=normal", "--skip-test-db", "--force")
	args = append(args, sizeArgs(b)...)
	return exec.CommandContext(ctx, script, args...), nil
}

// runInit runs cmd to its end and returns what it printed. It ends all
// processes of the command when its context ends: the script has children.
func runInit(cmd *exec.Cmd) ([]byte, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	// A child of the script that outlived it would hold the pipe open.
	cmd.WaitDelay = 5 * time.Second

	// See process.run for the reason of the lock.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Run()
	return out.Bytes(), err
}
