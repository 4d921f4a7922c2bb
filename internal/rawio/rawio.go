package rawio

import "syscall"

// Read is read(2) on a socket that does not block. It is made again where a signal interrupted it.
func Read(fd int, b []byte) (int, syscall.Errno) {
	for {
		if n, errno := read(fd, b); errno != syscall.EINTR {
			return n, errno
		}
	}
}

// Write is write(2) on a socket that does not block. It is made again where a signal interrupted
// it.
func Write(fd int, b []byte) (int, syscall.Errno) {
	for {
		if n, errno := write(fd, b); errno != syscall.EINTR {
			return n, errno
		}
	}
}
