package rawio

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"syscall"
)

// Error is the error of the net package for a read or write that failed on a connection with addr.
// err may be what a [syscall.RawConn] or an [os.File] has returned, or the number of a system
// call's error.
//
// The difference counts: crypto/tls goes on behind the end of a deadline only if the error is a
// [net.Error] that is temporary. Every other error it keeps and returns for ever.
func Error(op string, addr net.Addr, err error) *net.OpError {
	var ofNet *net.OpError
	var ofFile *fs.PathError
	switch {
	case errors.As(err, &ofNet):
		err = ofNet.Err // its op is "raw-read"
	case errors.As(err, &ofFile):
		err = ofFile.Err
	}
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno):
		err = os.NewSyscallError(op, errno)
	case !errors.Is(err, os.ErrDeadlineExceeded):
		err = net.ErrClosed // nothing else ends a wait, and a file has another error for it
	}
	return &net.OpError{Op: op, Net: addr.Network(), Addr: addr, Err: err}
}
