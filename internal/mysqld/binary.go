package mysqld

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Flavour is the family of a server. Families differ in options, initialisation and accounts.
type Flavour string

// The flavours that this package can start.
const (
	MariaDB Flavour = "MariaDB"
	MySQL   Flavour = "MySQL"
)

// Binary is a server program and its version.
type Binary struct {
	Path    string  // absolute, "/usr/sbin/mariadbd"
	Flavour Flavour // MariaDB or MySQL
	Version string  // three numbers, "10.11.6"
}

// String describes the program for messages: "MariaDB 10.11.6 (/usr/sbin/mariadbd)".
func (b Binary) String() string {
	return fmt.Sprintf("%s %s (%s)", b.Flavour, b.Version, b.Path)
}

// AtLeast reports whether the version is major.minor or newer. Versions of different flavours
// cannot be compared: MariaDB 10 is not newer than MySQL 9.
func (b Binary) AtLeast(major, minor int) bool {
	parts := strings.SplitN(b.Version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	gotMajor, err1 := strconv.Atoi(parts[0])
	gotMinor, err2 := strconv.Atoi(parts[1])
	if err1 != nil || err2 != nil {
		return false
	}
	return gotMajor > major || gotMajor == major && gotMinor >= minor
}

// ErrNotFound is the cause of [Find]'s and [FindClient]'s error if no program is installed. The
// error's text ends with the command that installs one.
var ErrNotFound = errors.New("not found")

// serverNames are tried in this order in every directory: if both exist, mysqld is usually a link
// to mariadbd.
var serverNames = []string{"mariadbd", "mysqld"}

// clientNames are the names of the command-line client.
var clientNames = []string{"mariadb", "mysql"}

// extraDirs are searched after PATH. An ordinary user's PATH often lacks the servers: Debian has
// them in sbin and Fedora in libexec. Homebrew does not link conflicting formulas.
var extraDirs = []string{
	"/usr/sbin",
	"/usr/libexec",
	"/usr/local/sbin",
	"/usr/local/bin",
	"/usr/local/libexec",
	"/usr/local/mysql/bin",
	"/opt/homebrew/bin",
	"/opt/homebrew/opt/mariadb/bin",
	"/opt/homebrew/opt/mysql/bin",
	"/usr/local/opt/mariadb/bin",
	"/usr/local/opt/mysql/bin",
}

// Find returns the server program at path. With an empty path it returns the first of mariadbd and
// mysqld in PATH and extraDirs. It runs the program once with --version. If there is no server at
// all, the error wraps [ErrNotFound] and names the command that installs one.
func Find(path string) (Binary, error) {
	if path == "" {
		found := lookup(serverNames)
		if found == "" {
			return Binary{}, fmt.Errorf("mariadbd or mysqld %w: install it with: %s", ErrNotFound, InstallCommand())
		}
		path = found
	}
	abs, err := absolute(path)
	var missing *exec.Error
	if errors.As(err, &missing) {
		err = missing.Err // the message starts with the name already
	}
	if err != nil {
		return Binary{}, fmt.Errorf("server binary %s: %w", path, err)
	}
	return identify(abs)
}

// FindClient returns the path of the command-line client mariadb or mysql. If there is none, the
// error wraps [ErrNotFound] and names the command that installs one.
func FindClient() (string, error) {
	found := lookup(clientNames)
	if found == "" {
		return "", fmt.Errorf("command-line client mariadb or mysql %w: install it with: %s", ErrNotFound, InstallCommand())
	}
	return absolute(found)
}

// lookup returns the first of names in PATH, then in extraDirs, or "".
func lookup(names []string) string {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	for _, dir := range extraDirs {
		for _, name := range names {
			if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return path
			}
		}
	}
	return ""
}

// absolute finds a bare name in PATH and resolves a relative path against the working directory, as
// a shell does.
func absolute(path string) (string, error) {
	found, err := exec.LookPath(path)
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return "", err
	}
	return filepath.Abs(found)
}

// versionPattern matches the version in "mariadbd Ver 10.11.6-MariaDB for ..." and in
// "/usr/sbin/mysqld Ver 9.7.4 for Linux on x86_64".
var versionPattern = regexp.MustCompile(`Ver (\d+\.\d+\.\d+)`)

// identify runs the program for its version. With --no-defaults a broken my.cnf on the machine does
// not matter to a private server.
func identify(path string) (Binary, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--no-defaults", "--version").CombinedOutput()
	if err != nil {
		return Binary{}, fmt.Errorf("%s --version: %w: %s", path, err, lastLines(out, 3))
	}
	match := versionPattern.FindSubmatch(out)
	if match == nil {
		return Binary{}, fmt.Errorf("%s is neither mariadbd nor mysqld: --version says %q", path, lastLines(out, 1))
	}
	b := Binary{Path: path, Flavour: MySQL, Version: string(match[1])}
	if strings.Contains(string(out), "MariaDB") {
		b.Flavour = MariaDB
	}
	return b, nil
}

// InstallCommand returns the command that installs a server and a client on this system. On an
// unknown system it returns a line for each known one.
func InstallCommand() string {
	const (
		debian = "apt-get install --no-install-recommends mariadb-server-core mariadb-client-core"
		fedora = "dnf install mariadb-server mariadb"
		macos  = "brew install mariadb"
	)
	sudo := "sudo "
	if os.Geteuid() == 0 {
		sudo = ""
	}
	switch {
	case runtime.GOOS == "darwin":
		return macos
	case installed("apt-get"):
		return sudo + debian
	case installed("dnf"):
		return sudo + fedora
	}
	return fmt.Sprintf("sudo %s (Debian, Ubuntu), sudo %s (Fedora) or %s (macOS)", debian, fedora, macos)
}

func installed(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}

// companion returns the path of a program that belongs to the server: the first of names beside it,
// in its installation, or in PATH.
func (b Binary) companion(names ...string) (string, error) {
	dir := filepath.Dir(b.Path)
	dirs := []string{dir}
	for _, d := range []string{"bin", "scripts", "sbin"} {
		dirs = append(dirs, filepath.Join(b.prefix(), d))
	}
	for _, d := range dirs {
		for _, name := range names {
			if path, err := exec.LookPath(filepath.Join(d, name)); err == nil {
				return path, nil
			}
		}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s %w beside %s", strings.Join(names, " or "), ErrNotFound, b.Path)
}

// prefix returns the directory of the installation: "/usr" for /usr/sbin/mariadbd.
func (b Binary) prefix() string {
	return filepath.Dir(filepath.Dir(b.Path))
}

// Client returns the path of the command-line client from the server's installation, or else the
// one of [FindClient].
func (b Binary) Client() (string, error) {
	if path, err := b.companion(clientNames...); err == nil {
		return path, nil
	}
	return FindClient()
}

// baseArgs point a server outside of /usr to its messages and plugins. A server in /usr knows their
// places, and Debian's paths do not follow from the base directory.
func (b Binary) baseArgs() []string {
	if b.prefix() == "/usr" {
		return nil
	}
	return []string{"--basedir=" + b.prefix()}
}
