package conf

// When says when a change of a key takes effect after a reload. It is the field's tag reload.
type When string

// The values of the tag.
const (
	// WhenNow: at the latest from the next statement outside of a transaction, also in running
	// sessions.
	WhenNow When = "now"
	// WhenNew: for later logins of clients, and later connections to servers.
	WhenNew When = "new"
	// WhenRestart: when the proxy starts again.
	WhenRestart When = "restart"
)

// Words describes w in docs/config.md and in statements. It is "" for an unknown value.
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

// within returns when a key of an element takes effect; the element itself takes effect at outer.
func (w When) within(outer When) When {
	if outer == WhenRestart {
		return outer
	}
	return w
}
