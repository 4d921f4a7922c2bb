package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/zap"

	"seqproxy/backend"
	"seqproxy/conf"
	"seqproxy/internal/inspect"
	"seqproxy/internal/tlsfiles"
	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence"
)

// clockTolerance is the difference between clocks that causes no warning.
const clockTolerance = time.Second

// connected compares a configuration with the servers. It changes nothing on them.
type connected struct {
	cfg    *conf.Config
	places []*inspect.Findings // in the order of the report
	seen   []seen              // all servers that answered
	now    time.Time

	bound     []proxy.Binding         // columns of [[bind]], and columns that own sequences
	numbering []backend.AutoIncrement // those with AUTO_INCREMENT
}

// seen is a server that answered.
type seen struct {
	*inspect.Server
	where string
}

// checkServers examines all servers. ctx bounds it.
func checkServers(ctx context.Context, cfg *conf.Config) ([]inspect.Finding, error) {
	k := &connected{cfg: cfg, now: time.Now()}
	for _, b := range cfg.Binds {
		if schema, table, column, err := b.Column.Split(); err == nil {
			// An invalid column was refused before.
			k.bindColumn(schema, table, column, b.Sequence)
		}
	}
	if err := k.sequenceServers(ctx); err != nil {
		return nil, err
	}
	if err := k.shards(ctx); err != nil {
		return nil, err
	}
	k.clocks()
	var all []inspect.Finding
	for _, p := range k.places {
		all = append(all, p.All...)
	}
	return all, nil
}

func (k *connected) at(where string) *inspect.Findings {
	f := &inspect.Findings{Where: where}
	k.places = append(k.places, f)
	return f
}

// checkClock warns if a server's clock differs from this machine's.
func (k *connected) checkClock(f *inspect.Findings, s *inspect.Server) {
	if s.Ahead.Abs()-s.Doubt <= clockTolerance {
		return
	}
	way := "ahead of"
	if s.Ahead < 0 {
		way = "behind"
	}
	f.Warn("clock", fmt.Sprintf("its clock is %v %s this machine's", s.Ahead.Abs().Round(100*time.Millisecond), way), "have both follow a time server, as chrony or systemd-timesyncd do")
}

// clocks warns if the clocks of servers differ from each other, although each is near this
// machine's.
func (k *connected) clocks() {
	if len(k.seen) == 0 {
		return
	}
	byClock := func(a, b seen) int { return cmp.Compare(a.Ahead, b.Ahead) }
	near := slices.DeleteFunc(slices.Clone(k.seen), func(s seen) bool { return s.Ahead.Abs()-s.Doubt > clockTolerance })
	if len(near) == 0 {
		return
	}
	first, last := slices.MinFunc(near, byClock), slices.MaxFunc(near, byClock)
	if apart := last.Ahead - first.Ahead; apart-first.Doubt-last.Doubt > clockTolerance {
		k.at("all servers").Warn("clock", fmt.Sprintf("the clock of %s is %v ahead of the clock of %s", last.where, apart.Round(100*time.Millisecond), first.where),
			"have all follow a time server, as chrony or systemd-timesyncd do")
	}
}

// codeOf returns the code and message of a server's error, or 0.
func codeOf(err error) (code uint16, message string) {
	if said := new(mysql.MySQLError); errors.As(err, &said) {
		return said.Number, said.Message
	}
	if said := new(protocol.ServerError); errors.As(err, &said) {
		return said.Code, said.Message
	}
	return 0, ""
}

// deniedTo matches the account in the message of error 1045.
var deniedTo = regexp.MustCompile(`for user '(.*)'@'([^']*)'`)

// loginFailed says why a login failed and what to do. key is the place of the password in the
// configuration.
func loginFailed(err error, user, schema, key string, add func(check, text, hint string, mend ...string)) {
	account := inspect.Account{User: user, Host: "%"}.String()
	code, message := codeOf(err)
	text := fmt.Sprintf("as %q: %v", user, err)
	const (
		tooMany, noRight, denied, noSchema, blocked, noHost, noTable = 1040, 1044, 1045, 1049, 1129, 1130, 1142
	)
	switch code {
	case denied, noHost:
		from := ""
		if m := deniedTo.FindStringSubmatch(message); m != nil {
			from = fmt.Sprintf(", which the server sees come from %q", m[2])
		}
		add("login", text, fmt.Sprintf("the account must exist, for the host of the proxy%s, with the password of %s", from, key),
			fmt.Sprintf("CREATE USER IF NOT EXISTS %s IDENTIFIED BY '<the password>'", account), fmt.Sprintf("ALTER USER %s IDENTIFIED BY '<the password>'", account))
	case noRight:
		add("login", text, "or name another schema in "+key, fmt.Sprintf("GRANT SELECT ON %s.* TO %s", quoteName(schema), account))
	case noTable:
		add("login", text, "run the GRANT in this text, for "+account)
	case noSchema:
		add("login", text, "or name another schema in "+key, "CREATE DATABASE "+quoteName(schema))
	case tooMany:
		add("login", text, "raise max_connections there, or see who is connected (SHOW PROCESSLIST)")
	case blocked:
		add("login", text, "on MySQL TRUNCATE TABLE performance_schema.host_cache", "FLUSH HOSTS")
	default:
		if code == 0 {
			text = err.Error()
		}
		add("login", text, "see that the server runs and can be reached from here, and the keys of TLS")
	}
}

// sequencesToExamine makes the part of the proxy that knows sequence servers, only to examine them.
func sequencesToExamine(cfg *conf.Config) (*sequence.Sequences, error) {
	opts, err := sequenceOptions(cfg, tlsfiles.NewStore(zap.NewNop()), zap.NewNop())
	if err != nil {
		return nil, err
	}
	opts.StateDir = "" // it belongs to a running proxy
	s, err := sequence.New(opts)
	if err != nil {
		return nil, fmt.Errorf("sequences: %w", err)
	}
	_ = ticketTables(cfg, s) // only tables that were asked for are examined
	return s, nil
}

func shardsToExamine(cfg *conf.Config) (*backend.Shards, error) {
	opts, err := shardOptions(cfg, tlsfiles.NewStore(zap.NewNop()), zap.NewNop())
	if err != nil {
		return nil, err
	}
	s, err := backend.New(opts)
	if err != nil {
		return nil, fmt.Errorf("shards: %w", err)
	}
	return s, nil
}
