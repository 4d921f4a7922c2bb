package mysqld

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxSocketPath is the length of sockaddr_un.sun_path on all systems: Linux has 108 bytes with the
// closing zero, macOS 104.
const maxSocketPath = 103

// paths are the files of one server.
type paths struct {
	dir     string // Config.Dir, absolute
	data    string
	tmp     string
	log     string
	pidFile string
	clock   string // file with the lead of the wall clock, with Config.ClockLibrary
	socket  string
	// socketDir is a short directory for the socket if dir is too long, else "".
	socketDir string
}

// newPaths makes dir and the directories in it, except for the data.
func newPaths(dir string) (paths, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return paths{}, err
	}
	p := paths{
		dir:     abs,
		data:    filepath.Join(abs, "data"),
		tmp:     filepath.Join(abs, "tmp"),
		log:     filepath.Join(abs, "error.log"),
		pidFile: filepath.Join(abs, "mysqld.pid"),
		clock:   filepath.Join(abs, "clock"),
		socket:  filepath.Join(abs, "mysqld.sock"),
	}
	if err := os.MkdirAll(p.tmp, 0o700); err != nil {
		return paths{}, err
	}
	if len(p.socket) > maxSocketPath {
		if p.socketDir, err = os.MkdirTemp("", "mysqld-"); err == nil && len(p.socketDir)+len("/s") > maxSocketPath {
			os.Remove(p.socketDir) //nolint:errcheck // the next try decides
			p.socketDir, err = os.MkdirTemp("/tmp", "mysqld-")
		}
		if err != nil {
			return paths{}, fmt.Errorf("directory for the socket: %w", err)
		}
		p.socket = filepath.Join(p.socketDir, "s")
	}
	return p, nil
}

// ensureSocketDir makes the socket's directory again after removeSocketDir.
func (p paths) ensureSocketDir() error {
	if p.socketDir == "" {
		return nil
	}
	err := os.Mkdir(p.socketDir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// removeSocketDir removes the only directory outside of dir.
func (p paths) removeSocketDir() error {
	if p.socketDir == "" {
		return nil
	}
	return os.RemoveAll(p.socketDir)
}

// logSize returns the present size of the error log. The lines of a later start follow there.
func (p paths) logSize() int64 {
	info, err := os.Stat(p.log)
	if err != nil {
		return 0
	}
	return info.Size()
}

// logSince returns the error log from an offset on, 64 kB at most.
func (p paths) logSince(offset int64) []byte {
	f, err := os.Open(p.log)
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // only read
	if info, err := f.Stat(); err == nil {
		offset = max(offset, info.Size()-64<<10)
	}
	text, err := io.ReadAll(io.NewSectionReader(f, offset, 64<<10))
	if err != nil {
		return nil
	}
	return text
}
