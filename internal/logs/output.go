package logs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// output is the destination of lines: stderr or a file.
type output struct {
	path     string // of the file; "" means stderr
	stderr   io.Writer
	lostLine func(lost uint64) []byte // makes the line that reports lost ones

	mu       sync.Mutex
	to       io.Writer // the file or stderr
	file     *os.File  // nil without a file
	closed   bool
	lost     uint64 // lines since the last successful write
	torn     bool   // the last line has no end
	reported bool   // stderr has a message that the file cannot be written
}

func openOutput(path string, stderr io.Writer, lostLine func(uint64) []byte) (*output, error) {
	o := &output{path: path, stderr: stderr, lostLine: lostLine, to: stderr}
	if path == "" {
		return o, nil
	}
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	o.to, o.file = f, f
	return o, nil
}

// openFile opens a log file to append to, so that others may truncate it. The directory must exist.
// A pipe is refused, since opening or writing it may block.
func openFile(path string) (*os.File, error) {
	switch info, err := os.Stat(path); {
	case err == nil && info.IsDir():
		return nil, fmt.Errorf("%s is a directory: name a file in it", path)
	case err == nil && info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0:
		return nil, fmt.Errorf("%s is a pipe or a socket: name a file", path)
	case errors.Is(err, os.ErrNotExist):
		if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("the directory %s does not exist", filepath.Dir(path))
		}
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640) // the error names the file
}

// write writes a line and its line end. A line that cannot be written is counted as lost.
func (o *output) write(line []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	if o.torn {
		if _, err := o.to.Write([]byte{'\n'}); err != nil {
			o.failed(err)
			return
		}
		o.torn = false
	}
	if o.lost > 0 {
		if !o.add(o.lostLine(o.lost)) {
			return
		}
		o.lost, o.reported = 0, false
	}
	o.add(line)
}

// add writes a line, and reports whether it is written.
func (o *output) add(line []byte) (ok bool) {
	n, err := o.to.Write(line)
	if err != nil {
		o.torn = n > 0 && !o.takeBack(n)
		o.failed(err)
	}
	return err == nil
}

// takeBack removes the n bytes of a torn line from the end of the file. They stay if another
// process has written after them.
func (o *output) takeBack(n int) (gone bool) {
	if o.file == nil {
		return false
	}
	end, err := o.file.Seek(0, io.SeekCurrent) // the end of the torn line
	if err != nil {
		return false
	}
	info, err := o.file.Stat()
	return err == nil && info.Mode().IsRegular() && info.Size() == end && o.file.Truncate(end-int64(n)) == nil
}

// failed counts a lost line. It writes a message to stderr for the first one.
func (o *output) failed(err error) {
	o.lost++
	if o.reported || o.path == "" {
		return
	}
	o.reported = true
	_, _ = fmt.Fprintf(o.stderr, "seqproxy: the log cannot be written, lines are lost until it can: %v\n", err)
}

// reopen changes to the file that now has the name. closing is the error of closing the old one:
// the system may report lost lines then.
func (o *output) reopen() (closing, err error) {
	f, err := openFile(o.path)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil, errors.Join(errors.New("the log is closed"), f.Close())
	}
	before := o.file
	o.to, o.file, o.torn = f, f, false
	return before.Close(), nil
}

func (o *output) close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil
	}
	o.closed = true
	if o.file == nil {
		return nil
	}
	return o.file.Close()
}
