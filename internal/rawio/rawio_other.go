//go:build !linux

package rawio

import "syscall"

// Read is read(2) on a non-blocking socket. It repeats a call that a signal interrupted.
func Read(fd int, b []byte) (int, syscall.Errno) {
	for {
		n, err := syscall.Read(fd, b)
		if err != syscall.EINTR {
			return n, errnoOf(err)
		}
	}
}

// Write is write(2) on a non-blocking socket. It repeats a call that a signal interrupted.
func Write(fd int, b []byte) (int, syscall.Errno) {
	for {
		n, err := syscall.Write(fd, b)
		if err != syscall.EINTR {
			return n, errnoOf(err)
		}
	}
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
