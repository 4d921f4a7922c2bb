package mysqld

import "syscall"

// dieWithParent has the kernel kill the child when we are gone, even by
// SIGKILL. The Go runtime checks after the fork that the parent still lives.
func dieWithParent(attr *syscall.SysProcAttr) {
	attr.Pdeathsig = syscall.SIGKILL
}

// guardChild has nothing to add to the parent-death signal.
func guardChild(int) (release func()) {
	return func() {}
}
