package session

import (
	"errors"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy/plan"
)

func TestAPlanMayAskInFourRoundsAndIsRefusedThen(t *testing.T) {
	p := &planning{planner: new(plan.Planner)}
	asks := plan.Verdict{Kind: plan.Asks}
	for round := range 4 {
		if again, err := p.fetch(&asks, round, nil); !again || err != nil {
			t.Errorf("round %d: again %v, %v", round, again, err)
		}
	}
	again, err := p.fetch(&asks, 4, nil)
	var refused *protocol.ServerError
	if again || !errors.As(err, &refused) || refused.Code != mysql.ER_NOT_SUPPORTED_YET {
		t.Errorf("after four rounds: again %v, %v, want 1235", again, err)
	}
}
