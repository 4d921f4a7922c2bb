//go:build !linux

package protocol

import "syscall"

// rawRead and rawWrite are read(2) and write(2) on a socket that does not block.

func rawRead(fd int, b []byte) (int, syscall.Errno) {
	n, err := syscall.Read(fd, b)
	return n, errnoOf(err)
}

func rawWrite(fd int, b []byte) (int, syscall.Errno) {
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
