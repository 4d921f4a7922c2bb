package mysqld

import "syscall"

// dieWithParent lets the kernel kill the child when this process ends, even by SIGKILL. After the
// fork, the Go runtime checks that the parent still lives.
func dieWithParent(attr *syscall.SysProcAttr) {
	attr.Pdeathsig = syscall.SIGKILL
}

// guardChild does nothing here: the parent-death signal is enough.
func guardChild(int) (release func()) {
	return func() {}
}
