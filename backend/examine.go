package backend

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"seqproxy/protocol"
)

// Examined is the outcome of one login by Examine.
type Examined struct {
	Shard, Node string
	User        string // "" means no account: Examine read only the greeting
	Schema      string
	Err         error // of Dial or of the connection; the fields below are then empty
	TLS         bool
	Hello       Hello
}

// Ask runs a statement and returns its rows as text, with NULL as "".
type Ask func(ctx context.Context, text string) ([][]string, error)

// Account is what Examine logs in with.
type Account struct {
	Credentials
	Schema string
}

// maxExamined bounds the logins that run at the same time.
const maxExamined = 16

// Examine logs in to every node, with the shard's own account or with each of the given ones. It
// calls visit once for each account and node, and once for a node that it cannot reach. Calls come
// from several goroutines. ask asks over that login, during the call alone; it is nil without a
// login. Nothing changes on the servers, except that a server counts a login without an account as
// an aborted connection.
func (r *Routes) Examine(ctx context.Context, accounts []Account, visit func(found Examined, ask Ask)) {
	slots := make(chan struct{}, maxExamined)
	var tasks sync.WaitGroup
	for _, t := range r.targets() {
		logins := accounts
		switch {
		case t.access.creds != nil:
			logins = []Account{{Credentials: *t.access.creds}}
		case len(logins) == 0 && t.access.probe.User != "":
			logins = []Account{{Credentials: t.access.probe}}
		}
		tasks.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if len(logins) == 0 {
				visit(r.examineGreeting(ctx, t), nil)
				return
			}
			for i, account := range logins {
				found := r.examineLogin(ctx, t, account, visit)
				if unreachable := new(UnreachableError); errors.As(found.Err, &unreachable) && i == 0 {
					return
				}
			}
		})
	}
	tasks.Wait()
}

func (r *Routes) examineGreeting(ctx context.Context, t target) Examined {
	found := Examined{Shard: t.shard.name, Node: t.node.String()}
	if err := r.greetNode(ctx, t); err != nil {
		found.Err = &UnreachableError{t.shard.name, t.node.String(), explain(err)}
		return found
	}
	found.Hello, _ = t.node.Hello()
	return found
}

// examineLogin logs in, and calls visit.
func (r *Routes) examineLogin(ctx context.Context, t target, account Account, visit func(Examined, Ask)) Examined {
	found := Examined{Shard: t.shard.name, Node: t.node.String(), User: account.User, Schema: account.Schema}
	capabilities := protocol.Protocol41 | protocol.SecureConnection | protocol.PluginAuth
	if account.Schema != "" {
		capabilities |= protocol.ConnectWithDB
	}
	c, err := r.dialEither(ctx, t.shard, t.node, Login{Credentials: account.Credentials, Schema: account.Schema, Capabilities: capabilities, Collation: utf8mb4GeneralCI, access: t.access})
	if err != nil {
		found.Err = err
		visit(found, nil)
		return found
	}
	defer c.Quit()
	defer context.AfterFunc(ctx, c.Abort)()
	found.TLS, found.Hello = c.IsTLS(), *c.Hello
	visit(found, func(ctx context.Context, text string) ([][]string, error) {
		if err := c.SetDeadline(r.dialDeadline(ctx, time.Now()).Add(r.connectTimeout)); err != nil {
			return nil, err
		}
		rows, err := c.Query(text)
		if err != nil {
			if ctx.Err() != nil {
				err = fmt.Errorf("%w (%w)", context.Cause(ctx), err)
			}
			return nil, err
		}
		all := make([][]string, len(rows))
		for i, row := range rows {
			all[i] = make([]string, len(row))
			for j, value := range row {
				all[i][j] = string(value)
			}
		}
		return all, nil
	})
	return found
}

// IntegerLimit returns the greatest number of a column type, given as information_schema writes it.
// It returns 0 if the type is no integer.
func IntegerLimit(columnType string) uint64 { return integerLimit(columnType) }
