package rawio

import (
	"syscall"
	"unsafe"
)

// Read is read(2) on a non-blocking socket. It repeats a call that a signal interrupted.
func Read(fd int, b []byte) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
		if errno != syscall.EINTR {
			return int(n), errno
		}
	}
}

// Write is write(2) on a non-blocking socket. It repeats a call that a signal interrupted.
func Write(fd int, b []byte) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
		if errno != syscall.EINTR {
			return int(n), errno
		}
	}
}
