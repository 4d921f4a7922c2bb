package mysqltest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"seqproxy/internal/mysqld"
)

// templateFormat counts changes of the template's contents, so that an older one in the cache is
// not used.
const templateFormat = 3

// copyTemplate makes a fresh data directory at dataDir. To initialise one takes about a second, to
// copy one a few hundredths.
func copyTemplate(b mysqld.Binary, dataDir string) error {
	dir, err := template(b)
	if err != nil {
		return err
	}
	if err := mysqld.CopyData(dir, dataDir); err != nil {
		return fmt.Errorf("copy data directory template: %w", err)
	}
	return nil
}

// templates has the template directory of each program that this process has used.
var templates struct {
	mu   sync.Mutex
	dirs map[mysqld.Binary]string
}

// template returns an initialised data directory for b. It is in the user's cache directory, since
// `go test` runs each package in another process.
func template(b mysqld.Binary) (string, error) {
	templates.mu.Lock()
	defer templates.mu.Unlock()
	if dir, ok := templates.dirs[b]; ok {
		return dir, nil
	}
	dir, err := templateDir(b)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		err = makeTemplate(b, dir)
		if err != nil {
			return "", err
		}
	} else if err != nil {
		return "", fmt.Errorf("data directory template: %w", err)
	}
	if templates.dirs == nil {
		templates.dirs = make(map[mysqld.Binary]string)
	}
	templates.dirs[b] = dir
	return dir, nil
}

// templateDir returns the path of b's template. It differs after the program was replaced in place.
func templateDir(b mysqld.Binary) (string, error) {
	info, err := os.Stat(b.Path)
	if err != nil {
		return "", fmt.Errorf("server binary: %w", err)
	}
	key := fmt.Sprint(templateFormat, b, info.Size(), info.ModTime().UnixNano(), os.Geteuid())
	cache, err := os.UserCacheDir()
	if err != nil { // no HOME, as in some containers
		cache = filepath.Join(os.TempDir(), fmt.Sprintf("cache-%d", os.Geteuid()))
	}
	return filepath.Join(cache, "seqproxy", "mysqltest", fmt.Sprintf("%x", sha256.Sum256([]byte(key)))[:16]), nil
}

// makeTemplate initialises a directory beside dir and renames it, so that dir is complete or
// missing. If two processes do this at the same time, one wins, and either result will do.
func makeTemplate(b mysqld.Binary, dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return fmt.Errorf("data directory template: %w", err)
	}
	work, err := os.MkdirTemp(filepath.Dir(dir), "make-")
	if err != nil {
		return fmt.Errorf("data directory template: %w", err)
	}
	defer os.RemoveAll(work) //nolint:errcheck // a leftover beside the result does no harm
	data := filepath.Join(work, "data")
	if err := mysqld.Init(ctx, b, data); err != nil {
		return err
	}
	// MySQL's server_uuid; the server makes a new one for every copy.
	if err := os.Remove(filepath.Join(data, "auto.cnf")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("data directory template: %w", err)
	}
	if makesCertificate(b) {
		if err := certificateIn(data).writeSelfSigned(); err != nil {
			return fmt.Errorf("data directory template: %w", err)
		}
	}
	sparse := filepath.Join(work, "sparse")
	if err := mysqld.CopyData(data, sparse); err != nil {
		return fmt.Errorf("data directory template: %w", err)
	}
	if err := os.Rename(sparse, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("data directory template: %w", err)
	}
	return nil
}
