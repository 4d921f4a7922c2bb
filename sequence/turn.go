package sequence

import "context"

// turn is a lock that is held while a server is asked, which may not answer: nobody waits for it longer than for the answer.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// take waits for the turn. If it is not nil, the error is the cause of the end of ctx.
func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// await takes the turn however long that is, for those who must have it.
func (t turn) await() { t <- struct{}{} }

func (t turn) end() { <-t }

// held reports whether somebody has the turn.
func (t turn) held() bool { return len(t) > 0 }
