package session

import (
	"context"

	"github.com/go-mysql-org/go-mysql/mysql"
	"go.uber.org/zap"

	"seqproxy/backend"
	"seqproxy/internal/logfield"
	"seqproxy/protocol"
	"seqproxy/proxy/stats"
	"seqproxy/sequence"
	"seqproxy/statement"
)

// Caller is the user who asks about sequences, or about the proxy itself.
type Caller struct {
	ID      uint32 // the session's connection id
	Admin   bool   // the user may change sequences
	Monitor bool   // the user may see all that an admin sees
	// NoBackslashEscapes says that a backslash in the caller's strings is a character.
	NoBackslashEscapes bool

	CallerSession
}

// CallerSession is what an administrator needs of a Caller's session.
type CallerSession interface {
	// MayUse reports whether the user may use a sequence, and so see it.
	MayUse(ctx context.Context, name []byte) (bool, error)
	// Usable returns which of stored, the names of sequences as the table spells them, the user may
	// use. With an error come those that are known without the sequence server.
	Usable(ctx context.Context, stored []string) (map[string]bool, error)
	// Audit logs that the caller has changed something by a statement, or was refused it with err.
	// The statement must have nothing in it that may be a secret.
	Audit(statement string, err error)
	// Highest reads the greatest number in a column on every shard, or without a schema in every
	// table of the name. There may be no shard.
	Highest(ctx context.Context, schema, table, column string, of backend.Expression) []backend.Highest
	// Numbered returns, as the user, the bound columns that have AUTO_INCREMENT on more than one
	// shard. The error is about servers that could not be asked.
	Numbered(ctx context.Context) ([]Numbered, error)
}

// caller returns the session as a Caller.
func (t *texts) caller() Caller {
	account := t.at.login.Account
	return Caller{ID: t.at.id, Admin: account.Admin, Monitor: account.MaySee(), NoBackslashEscapes: t.state.Mode.NoBackslashEscapes, CallerSession: asker{t}}
}

// asker is a session as a CallerSession.
type asker struct{ t *texts }

// MayUse reports whether the user may use a sequence.
func (a asker) MayUse(ctx context.Context, name []byte) (bool, error) {
	return a.t.planning.mayUse(ctx, name)
}

// Usable returns which of stored the user may use.
func (a asker) Usable(ctx context.Context, stored []string) (map[string]bool, error) {
	return a.t.at.login.Account.Rights.Among(ctx, a.t.at.set.right, stored)
}

// Audit logs a change by the session.
func (a asker) Audit(statement string, err error) { a.t.at.Audit(statement, err) }

// Highest reads the greatest number in a column on every shard, with the user's own rights.
func (a asker) Highest(ctx context.Context, schema, table, column string, of backend.Expression) []backend.Highest {
	return a.t.at.set.Routes.Highest(ctx, a.t.at.account().UserCredentials, schema, table, column, of)
}

// Numbered returns, as the user, the bound columns that have AUTO_INCREMENT on more than one shard.
func (a asker) Numbered(ctx context.Context) ([]Numbered, error) {
	return a.t.at.set.Numbered(ctx, func(shard *backend.Shard) ([]backend.Credentials, error) {
		creds, err := a.t.at.account().UserCredentials(shard)
		return []backend.Credentials{creds}, err
	})
}

// atAdminAddress handles a text at the admin address, where no command ever waits.
func (t *texts) atAdminAddress(sql []byte) error {
	if asksForNumbers(&t.planning.stmt) {
		return t.at.noServer()
	}
	return t.special(sql)
}

// administer answers a statement that defines, changes or shows sequences.
func (t *texts) administer(sql []byte) error {
	st := &t.planning.stmt
	if relay, err := t.planning.concernsServer(st); err != nil {
		return err
	} else if relay {
		return t.delivery.passOn(sql)
	}
	return t.administerHere(st, nil)
}

// administerHere answers a statement of administer. Its names are in UTF-8. p is the prepared
// statement, or nil.
func (t *texts) administerHere(st *statement.Statement, p *prepared) error {
	if err := t.at.notHere(st); err != nil {
		return err
	}
	t.at.tally.Becomes(stats.KindAdmin)
	t.at.disengage()
	// The earlier waits of the statement do not count: each sequence in it has the whole time.
	table, err := t.at.set.admin.Execute(context.WithValue(&t.numbers.Patience, sequence.WaiterKey{}, nil), st, t.caller())
	if err = t.numbers.Patience.Over(err); err != nil {
		if t.at.login.Account.MaySee() && !ends(err) {
			err = inFull(err)
		}
		return err
	}
	if err = t.answers.table(table, p); table.After == nil {
		return err
	}
	defer table.After()
	if err != nil {
		return err
	}
	return t.client.flush()
}

// notHere returns an error for a statement to the proxy that is answered only at the admin address,
// if the user may give it there, else nil.
func (a *attachment) notHere(st *statement.Statement) error {
	if st.Kind != statement.Seqproxy && st.Kind != statement.ExplainRoute {
		return nil
	}
	if !a.set.AdminAddressOnly || a.login.AtAdmin || !a.login.Account.MaySee() {
		return nil
	}
	where := "the admin address"
	if l := a.shared.AdminAddress; l != nil {
		where += " " + l.String()
	}
	return protocol.Errorf(mysql.ER_NOT_SUPPORTED_YET, "42000", "seqproxy: SEQPROXY, SHOW SEQPROXY and EXPLAIN FORMAT=ROUTE are answered at %s (admin.data_port is false)", where)
}

// maxAudited bounds the statement in an audit line.
const maxAudited = 1 << 10

// Audit logs what an admin has done, or what a user who is no admin was refused. It writes the
// statement anew, without what may be a secret.
func (b *backends) Audit(statement string, err error) {
	fields := []zap.Field{zap.String(logfield.NameStatement, limit(statement, maxAudited))}
	if err == nil {
		b.log().Info("audit", append(fields, zap.String("outcome", logfield.OutcomeDone))...)
		return
	}
	b.log().Info("audit", append(fields, zap.String("outcome", "failed"), logfield.Code(forClient(err).Code), logfield.Err(err))...)
}
