package statefile

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
)

// File names in the directory.
const (
	fileName = "state"
	newName  = "state.new" // becomes fileName when it is complete
	lockName = "lock"
)

// spare bounds the superfluous bytes of the log. With more, it is written anew.
const spare = 64 << 10

// ErrClosed says that the file was closed.
var ErrClosed = errors.New("the state file is closed")

// File is an open state file. It is safe for concurrent use.
type File struct {
	dir, path string
	lock      *os.File
	log       *zap.Logger

	mu     sync.Mutex
	values map[string]string // guarded by mu; the contents on disk
	next   *Write            // guarded by mu; collects records for the next write
	ended  bool              // guarded by mu

	writing sync.Mutex // locked during a write
	file    *os.File   // guarded by writing; nil: it must be written anew
	size    int64      // guarded by writing; of the valid part
	needed  int64      // guarded by writing; the size after it was last written anew

	failing atomic.Bool // changed only under writing: the last write failed, and that was logged
}

// Open locks the directory and reads the file. It makes the directory if its parent exists. Errors
// name the file and the way out. If the disk is full, Open succeeds, and writes fail until there is
// space.
func Open(dir string, log *zap.Logger) (*File, error) {
	f := &File{dir: dir, path: filepath.Join(dir, fileName), log: log.With(zap.String("file", filepath.Join(dir, fileName)))}
	if err := makeDir(dir); err != nil {
		return nil, err
	}
	var err error
	if f.lock, err = lockDir(dir); err != nil {
		return nil, err
	}
	if err := f.load(); err != nil {
		return nil, errors.Join(err, f.lock.Close())
	}
	// Write it anew at once, to find out now whether that is possible.
	f.writing.Lock()
	defer f.writing.Unlock()
	if err := f.rewrite(nil); err != nil && !isFull(err) {
		return nil, errors.Join(f.explain(err), f.lock.Close())
	} else if err != nil {
		f.fail(err)
	}
	return f, nil
}

// makeDir makes a missing directory.
func makeDir(dir string) error {
	err := os.Mkdir(dir, 0o700)
	switch {
	case err == nil:
		if err := syncDir(filepath.Dir(dir)); err != nil {
			return fmt.Errorf("make the state directory: %w", err)
		}
	case !errors.Is(err, os.ErrExist):
		return fmt.Errorf("make the state directory: %w", err)
	}
	return nil
}

// load reads the file of an earlier process. A missing file is an empty one.
func (f *File) load() error {
	data, err := os.ReadFile(f.path)
	if errors.Is(err, os.ErrNotExist) {
		f.values = make(map[string]string)
		f.log.Info("state file begins empty")
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the state file: %w", err)
	}
	values, torn, err := decode(data)
	if err != nil {
		return fmt.Errorf("state file %s: %w; if it cannot be brought back, move it away: the proxy then starts without knowing "+
			"which numbers it gave, which matters only if the rows of sequences went back meanwhile (CHECK SEQUENCE tells)", f.path, err)
	}
	if torn > 0 {
		f.log.Warn("state file had a torn end", zap.Int("bytes", torn))
	}
	f.values = values
	return nil
}

// Get returns the value of key on disk.
func (f *File) Get(key string) (value string, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	value, ok = f.values[key]
	return value, ok
}

// All returns a copy of everything on disk.
func (f *File) All() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.values)
}

// Write is a set of records that reach the disk together. Several callers may share it.
type Write struct {
	records map[string]string // guarded by mu of its File while it is next there
	once    sync.Once
	err     error
}

// Put starts to set key to value. The last value of a key counts. The caller must Wait for the
// write.
func (f *File) Put(key, value string) *Write {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next == nil {
		f.next = &Write{records: make(map[string]string)}
	}
	f.next.records[key] = value
	return f.next
}

// Wait returns when the whole write is on disk, or with the reason why it is not. Then none of it
// is known to be on disk. Who waits first carries the write out.
func (f *File) Wait(w *Write) error {
	w.once.Do(func() { w.err = f.commit(w) })
	return w.err
}

// Ready makes sure that the file can be written, judging by the last write. If that one failed, it
// tries again.
func (f *File) Ready() error {
	f.writing.Lock()
	defer f.writing.Unlock()
	if f.file != nil {
		return nil
	}
	if f.closed() {
		return ErrClosed
	}
	return f.write(nil)
}

// Failing reports whether the last write failed. It does not wait.
func (f *File) Failing() bool { return f.failing.Load() }

func (f *File) closed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended
}

// commit writes w when nobody can add to it any more.
func (f *File) commit(w *Write) error {
	f.writing.Lock()
	defer f.writing.Unlock()
	f.mu.Lock()
	if f.next == w {
		f.next = nil
	}
	ended := f.ended
	f.mu.Unlock()
	if ended {
		return ErrClosed
	}
	return f.write(w.records)
}

// write brings records to the disk. The caller has locked f.writing.
func (f *File) write(records map[string]string) error {
	line := encode(records)
	var err error
	switch {
	case f.file == nil:
		err = f.rewrite(records)
	case f.size+int64(len(line)) > 2*f.needed+spare:
		// If this fails, there may still be space for another line.
		if err = f.rewrite(records); err != nil && f.file != nil {
			err = f.add(line, records)
		}
	default:
		err = f.add(line, records)
	}
	if err != nil {
		f.fail(err)
		return f.explain(err)
	}
	if f.failing.CompareAndSwap(true, false) {
		f.log.Info("state file can be written again")
	}
	return nil
}

// add adds a line.
func (f *File) add(line []byte, records map[string]string) error {
	if err := appendLine(f.file, line, f.size); err != nil {
		// The contents of the file are unknown: after a failed fsync, a successful one says nothing
		// about this line.
		_ = f.file.Truncate(f.size)
		_ = f.file.Close()
		f.file = nil
		return err
	}
	f.size += int64(len(line))
	f.apply(records)
	return nil
}

// rewrite writes everything, with records, to a new file that replaces the old one. After an error
// the old one is unchanged, except that its name may be in doubt.
func (f *File) rewrite(records map[string]string) error {
	f.mu.Lock()
	all := maps.Clone(f.values)
	f.mu.Unlock()
	maps.Copy(all, records)
	data := encodeAll(all)
	path := filepath.Join(f.dir, newName)
	created, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err = created.Write(data); err == nil {
		err = created.Sync()
	}
	if err == nil {
		err = os.Rename(path, f.path)
	}
	if err != nil {
		return errors.Join(err, created.Close(), os.Remove(path))
	}
	if f.file != nil {
		_ = f.file.Close()
		f.file = nil
	}
	if err := syncDir(f.dir); err != nil {
		return errors.Join(err, created.Close())
	}
	f.file, f.size, f.needed = created, int64(len(data)), int64(len(data))
	f.apply(records)
	return nil
}

func (f *File) apply(records map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.Copy(f.values, records)
}

// fail logs the first of several failures in a row.
func (f *File) fail(err error) {
	if !f.failing.CompareAndSwap(false, true) {
		return
	}
	f.log.Error("state file cannot be written", logfield.Err(err))
}

func (f *File) explain(err error) error {
	return fmt.Errorf("state file %s cannot be written: %w", f.path, err)
}

// Close releases the directory for another process. Writes under way succeed or fail. Later ones
// fail.
func (f *File) Close() error {
	f.writing.Lock()
	defer f.writing.Unlock()
	f.mu.Lock()
	ended := f.ended
	f.ended = true
	f.mu.Unlock()
	if ended {
		return nil
	}
	var err error
	if f.file != nil {
		err = f.file.Close()
		f.file = nil
	}
	return errors.Join(err, f.lock.Close())
}

// syncDir flushes the names in a directory to the disk.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
