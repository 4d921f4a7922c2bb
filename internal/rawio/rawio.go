package rawio

import "syscall"

// Read is read(2) on a non-blocking socket. It repeats a call that a signal interrupted.
func Read(fd int, b []byte) (int, syscall.Errno) {
	for {
		if n, errno := read(fd, b); errno != syscall.EINTR {
			return n, errno
		}
	}
}

// Write is write(2) on a non-blocking socket. It repeats a call that a signal interrupted.
func Write(fd int, b []byte) (int, syscall.Errno) {
	for {
		if n, errno := write(fd, b); errno != syscall.EINTR {
			return n, errno
		}
	}
}
