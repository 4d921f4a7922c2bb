//go:build !linux

package rawio

import "syscall"

// Read is read(2) on a socket that does not block.
func Read(fd int, b []byte) (int, syscall.Errno) {
	n, err := syscall.Read(fd, b)
	return n, errnoOf(err)
}

// Write is write(2) on a socket that does not block.
func Write(fd int, b []byte) (int, syscall.Errno) {
	n, err := syscall.Write(fd, b)
	return n, errnoOf(err)
}

func errnoOf(err error) syscall.Errno {
	if err == nil {
		return 0
	}
	errno, ok := err.(syscall.Errno)
	if !ok {
		return syscall.EIO
	}
	return errno
}
