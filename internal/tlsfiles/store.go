package tlsfiles

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
)

// Store makes settings from files and keeps them. It is safe for concurrent use.
type Store struct {
	log *zap.Logger

	mu      sync.Mutex // locked while files are read
	sources []*source  // guarded by mu
}

// NewStore makes an empty Store. It does no I/O.
func NewStore(log *zap.Logger) *Store { return &Store{log: log} }

// Use identifies a setting: its name, and its ServerFiles or ClientFiles.
type Use struct {
	Name  string // in messages: "tls", "shard photos0"
	Files any
}

// source is one setting and its files.
type source struct {
	Use
	setting any
	files   []file
	// build makes the setting from the files' contents, nil for no file, and puts it in force.
	// After an error the setting is unchanged.
	build func(contents [][]byte) error

	used     digest // of the contents in force
	failed   digest // of the contents that could not be used the last time
	reported bool   // failed was logged
}

// file is one of a setting's files. Its path is "" if it is not configured.
type file struct{ key, path string }

// digest identifies contents. Times and sizes of files cannot: copies keep them, and a file may be
// replaced twice within a clock tick.
type digest [sha256.Size]byte

// add reads the files of a new setting for the first time.
func (s *Store) add(use Use, setting any, files []file, build func(contents [][]byte) error) error {
	src := &source{Use: use, setting: setting, files: files, build: build}
	if _, err := src.load(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sources = append(s.sources, src)
	return nil
}

// find returns the existing setting of a use, or nil.
func (s *Store) find(use Use) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, src := range s.sources {
		if src.Use == use {
			return src.setting
		}
	}
	return nil
}

// Keep drops the settings of all other uses and no longer watches their files.
func (s *Store) Keep(uses []Use) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sources = slices.DeleteFunc(s.sources, func(src *source) bool { return !slices.Contains(uses, src.Use) })
}

// load reads the files and puts changed contents in force.
func (src *source) load() (changed bool, err error) {
	contents, now, err := src.read()
	if err == nil && now == src.used {
		src.failed, src.reported = digest{}, false
		return false, nil
	}
	if err == nil {
		err = src.build(contents)
	}
	if err != nil {
		if now != src.failed {
			src.failed, src.reported = now, false
		}
		return false, err
	}
	src.used, src.failed, src.reported = now, digest{}, false
	return true, nil
}

func (src *source) read() (contents [][]byte, now digest, err error) {
	contents = make([][]byte, len(src.files))
	hash := sha256.New()
	for i, f := range src.files {
		if f.path != "" {
			if contents[i], err = readFile(f.path); err != nil {
				err = fmt.Errorf("%s: %w", f.key, err)
				fmt.Fprint(hash, err) // for an unreadable file the error is the contents
				break
			}
		}
		fmt.Fprintf(hash, "%d:", len(contents[i]))
		hash.Write(contents[i])
	}
	return contents, digest(hash.Sum(nil)), err
}

// maxFile bounds a file, in bytes. No certificate, key or bundle of CAs is so large.
const maxFile = 4 << 20

func readFile(path string) ([]byte, error) {
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() { // opening a pipe would wait for the other end
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxFile {
		return nil, fmt.Errorf("%s is longer than %d bytes", path, maxFile)
	}
	return b, nil
}

// Reload reads all files now. It returns the names of the settings that changed, for connections
// made from now on. The error names those that could not be used; they stay unchanged.
func (s *Store) Reload() (changed []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, src := range s.sources {
		did, srcErr := src.load()
		if did {
			changed = append(changed, src.Name)
		}
		if srcErr != nil {
			src.reported = true // the caller reports it
			err = errors.Join(err, fmt.Errorf("%s: %w", src.Name, srcErr))
		}
	}
	return changed, err
}

// checkEvery is the time between two checks by Watch.
const checkEvery = 5 * time.Second

// Watch checks the files every few seconds until ctx is done and reloads changed ones. A file may
// be rewritten, renamed, or reached by a link that now leads elsewhere, as in Kubernetes. Contents
// that cannot be used are logged once.
func (s *Store) Watch(ctx context.Context) { s.watch(ctx, checkEvery) }

func (s *Store) watch(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.check()
		}
	}
}

func (s *Store) check() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, src := range s.sources {
		before := src.failed
		changed, err := src.load()
		switch {
		case changed:
			s.log.Info("certificates read again", zap.Strings("used_by", []string{src.Name}))
		case err != nil && !src.reported && src.failed == before:
			// The second check gives the same: it is no certificate whose key will follow in a
			// moment.
			src.reported = true
			s.log.Warn("changed certificates not used", zap.Strings("used_by", []string{src.Name}), logfield.Err(err))
		}
	}
}
