package sequence

import (
	"errors"
	"strings"
	"testing"
	"time"

	"seqproxy/sequence/define"
)

func TestTheClocksKeepTheirRules(t *testing.T) {
	usual := standardTiming()
	if err := usual.check(); err != nil {
		t.Error(err)
	}
	for what, breakIt := range map[string]func(*timing){
		"stale: ": func(t *timing) { t.stale = 2*t.beat + t.follow + t.round }, "tenure: ": func(t *timing) { t.tenure = t.followRarely },
		"confirm: ":      func(t *timing) { t.confirm = t.tenure },
		"change: ":       func(t *timing) { t.change = time.Second },
		"silence: ":      func(t *timing) { t.Silence = t.ConnLife },
		"followRarely: ": func(t *timing) { t.followRarely = t.follow - 1 }, "shown: ": func(t *timing) { t.Shown = t.LastLook },
		"lastLook: ": func(t *timing) { t.LastLook = t.FirstLook - 1 }, "lastBackoff: ": func(t *timing) { t.lastBackoff = t.frozenBackoff - 1 },
		"frozenBackoff: ": func(t *timing) { t.frozenBackoff = t.firstBackoff - 1 }, "peer is 0s": func(t *timing) { t.peer = 0 },
		"editSilence: ": func(t *timing) { t.editSilence = 3 * time.Second },
	} {
		broken := standardTiming()
		breakIt(&broken)
		o := Options{Servers: []ServerOptions{{Addr: "127.0.0.1:1", Database: "none"}}, timing: &broken}
		if _, err := New(o); !errors.Is(err, define.ErrBadOption) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s got %v, want an error about it", what, err)
		}
	}
}
