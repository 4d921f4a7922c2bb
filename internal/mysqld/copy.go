package mysqld

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// CopyData copies directories and files. A data directory has nothing else after its server has
// ended.
func CopyData(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if d.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("%s is neither a file nor a directory", path)
		}
		return copyFile(path, target)
	})
}

// copyFile copies a file except for blocks of zeros: more than half of a fresh data directory is an
// empty redo log. It does not read the holes of a sparse file.
func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // only read
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()

	block := blocks.Get().(*[blockSize]byte)
	defer blocks.Put(block)
	for at := int64(0); at < info.Size(); {
		if data, err := in.Seek(at, unix.SEEK_DATA); err == nil {
			at = data
		} else if errors.Is(err, unix.ENXIO) {
			break // only zeros follow
		}
		n, err := in.ReadAt(block[:], at)
		if err != nil && err != io.EOF {
			return err
		}
		if !bytes.Equal(block[:n], zeros[:n]) {
			if _, err := out.WriteAt(block[:n], at); err != nil {
				return err
			}
		}
		at += int64(n)
	}
	return out.Truncate(info.Size())
}

const blockSize = 64 << 10

var (
	zeros  [blockSize]byte
	blocks = sync.Pool{New: func() any { return new([blockSize]byte) }}
)
