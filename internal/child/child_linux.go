package child

import "syscall"

// dieWithParent lets the kernel kill the process when this program is killed.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
