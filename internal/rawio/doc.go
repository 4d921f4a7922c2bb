// Package rawio reads and writes sockets without telling Go's scheduler of the system
// calls.
//
// Told, as by syscall.Read and Write, its monitor thread takes the processor away from a
// call that it sees twice, some tens of microseconds apart, which on a busy machine is
// whenever the kernel wakes the peer in the middle of it. Calls that never wait give the
// scheduler nothing to hand a processor on for. And where everything is idle again and
// again for a moment, that thread goes to sleep each time, and the next call that is told
// wakes it, to look as often as it can. docs/performance.md has what both are worth.
//
// What it costs: a monitor that sleeps interrupts no goroutine either that computes for
// longer than its turn of 10 ms. Where others wait for that on all processors, it goes on
// until the next timer or told call.
//
// Start at Conn, which is a net.Conn. Read and Write are for callers with a loop of their
// own over [syscall.RawConn]. The net package waits, as ever, and knows deadlines.
package rawio
