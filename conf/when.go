package conf

// When says from when on a change of a key in the file counts, after a reload. It is the
// tag reload of the key's field.
type When string

// The values of the tag.
const (
	// WhenNow: at the latest from the next statement outside a transaction on, for sessions
	// that run as well.
	WhenNow When = "now"
	// WhenNew: for clients that log in, and connections that are opened, from then on.
	WhenNew When = "new"
	// WhenRestart: not before the proxy starts again.
	WhenRestart When = "restart"
)

// Words are those for it in docs/config.md and in statements; "" of what is none of the values.
func (w When) Words() string {
	switch w {
	case WhenNow:
		return "at once"
	case WhenNew:
		return "new sessions"
	case WhenRestart:
		return "restart"
	}
	return ""
}

// within is when a key counts of an element that itself counts at outer.
func (w When) within(outer When) When {
	if outer == WhenRestart {
		return outer
	}
	return w
}
