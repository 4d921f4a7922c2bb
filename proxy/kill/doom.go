package kill

import "sync/atomic"

// Doom is why another goroutine ends a session. Any goroutine may use it. The first reason stays.
type Doom struct{ why atomic.Uint32 }

// Reasons to end a session.
const (
	NotDoomed = iota
	Killed    // a client's KILL, which the server still has to carry out
	Vanished  // the client has hung up
	Drained   // it was busy for longer than a shutdown waits
)

// Why returns the reason.
func (d *Doom) Why() uint32 { return d.why.Load() }

// Is reports whether the session is being ended.
func (d *Doom) Is() bool { return d.why.Load() != NotDoomed }

// Set gives a reason, if there is none.
func (d *Doom) Set(why uint32) { d.why.CompareAndSwap(NotDoomed, why) }

// Spare removes Killed, if that is the present reason.
func (d *Doom) Spare() { d.why.CompareAndSwap(Killed, NotDoomed) }
