// Package rawio reads and writes sockets without telling Go's scheduler about the system calls.
//
// The scheduler knows of calls made with syscall.Read and Write. Its monitor thread takes the
// processor away from a call that it sees twice, some tens of microseconds apart. On a busy machine
// that happens whenever the kernel wakes the peer during the call. But these calls never wait, so
// it gains nothing. There is a second cost: if a process is often idle for a moment, the monitor
// goes to sleep each time, and the next call that it knows of wakes it to look as often as it can.
// With such calls a relayed SELECT 1 cost 1.66 times the CPU of HAProxy, and without them 1.26.
//
// The price: while the monitor sleeps it does not interrupt a goroutine that computes for longer
// than 10 ms. If others wait on all processors, they wait until the next timer or call that the
// scheduler knows of.
//
// Start at Conn, which is a net.Conn. Read and Write are for callers with their own loop over
// [syscall.RawConn]. The net package still waits and handles deadlines.
package rawio
