// Package rawio reads and writes sockets without telling Go's scheduler of the system
// calls.
//
// Told, as by syscall.Read and Write, it hands the processor on as soon as a call takes
// more than 20 us, which on a busy machine is whenever the kernel wakes the peer in the
// middle of it; and its monitor thread, which looks for that, wakes 50,000 times a second
// as long as one of them follows another. Calls that never wait give it nothing to hand
// on for. docs/performance.md has what that is worth.
//
// Start at Conn, which is a net.Conn. Read and Write are for callers with a loop of their
// own over [syscall.RawConn]. The net package waits, as ever, and knows deadlines.
package rawio
