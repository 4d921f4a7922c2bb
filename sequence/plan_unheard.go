package sequence

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"go.uber.org/zap"

	"seqproxy/internal/logfield"
)

// This file is how a proxy that has heard of no plan moves no row of a server that obeys one by now: between its numbers applications may count on.

// unheardPlan is what this process knows of the table in which a server says what it is in a plan. Before the first change of the servers there is none.
type unheardPlan struct {
	mu      sync.Mutex
	there   bool      // guarded by mu; it is asked itself
	refused time.Time // guarded by mu; since when it may not be read, or is another one; zero: it may
	told    bool      // guarded by mu; somebody was told of that
}

// asked is how a statement makes sure that there is no plan.
type asked int

const (
	askedNobody asked = iota
	askedSchema       // whether there is the table
	askedMember       // the table
)

// askAgainAfter is how long a table that may not be read is left alone: somebody may have granted that.
const askAgainAfter = time.Minute

// errUnheard: the statement asked for the plan in a way that fails. The next attempt does in another one.
var errUnheard = errors.New("whether there is a plan of the sequence servers has to be asked in another way")

// withoutPlan has an UPDATE change nothing once the server obeys a plan. information_schema tells whether there is a table that could say so, and afterwards only plans write to that: nobody
// waits for anything else there. Where it may not be read, a reservation finds out behind its UPDATE.
func (v *server) withoutPlan() (string, asked) {
	u := &v.unheard
	u.mu.Lock()
	defer u.mu.Unlock()
	if time.Since(u.refused) < askAgainAfter {
		return "", askedNobody
	}
	u.refused = time.Time{}
	if u.there {
		return " AND IFNULL((SELECT m.`plan` FROM " + v.table.member + " AS m WHERE m.`one` = 1), 0) = 0", askedMember
	}
	return " AND NOT " + v.table.memberThere, askedSchema
}

// forgetMember has information_schema asked again, as on another node.
func (u *unheardPlan) forgetMember() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.there, u.refused, u.told = false, time.Time{}, false
}

// lookForMember is for a statement that changed no row. It is errUnheard if that may be because there is the table by now.
func (v *server) lookForMember(ctx context.Context, conn *sql.Conn, a asked) error {
	if a != askedSchema {
		return nil
	}
	there, err := hasTable(ctx, conn, v.table.member)
	switch {
	case isRefused(err), isBroken(err):
		v.memberRefused(err)
	case err != nil || !there:
		return err
	default:
		v.unheard.mu.Lock()
		v.unheard.there, v.unheard.told = true, false
		v.unheard.mu.Unlock()
	}
	return errUnheard
}

// memberFailed is for a statement that failed with err. It is errUnheard if that may be because it asked the table.
func (v *server) memberFailed(err error, a asked) error {
	switch {
	case a != askedMember:
		return nil
	case hasCode(err, gomysql.ER_NO_SUCH_TABLE):
		v.unheard.forgetMember() // somebody has dropped it
	case isRefused(err), isBroken(err):
		v.memberRefused(err)
	default:
		return nil
	}
	return errUnheard
}

// memberRefused takes note that the table cannot be read.
func (v *server) memberRefused(err error) {
	u := &v.unheard
	u.mu.Lock()
	told := u.told
	u.there, u.refused, u.told = false, time.Now(), true
	u.mu.Unlock()
	if !told {
		v.log.Warn("plan of a sequence server not seen", zap.String("table", v.table.member), logfield.Err(err))
	}
}

// isBroken reports whether a table is there, but not what belongs to it in the storage engine.
func isBroken(err error) bool {
	const noSuchTableInEngine = 1932
	return hasCode(err, noSuchTableInEngine, gomysql.ER_TABLESPACE_MISSING, gomysql.ER_TABLESPACE_DISCARDED)
}
