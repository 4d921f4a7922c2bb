package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"seqproxy/internal/await"
	"seqproxy/internal/process"
	"seqproxy/sequence/link"
)

// CreateProxies makes the table of the proxies that may hold numbers. `version` is the last change
// of the options table that the proxy obeys.
const CreateProxies = "CREATE TABLE IF NOT EXISTS %s (`id` char(26) CHARACTER SET ascii NOT NULL, `host` varchar(255) CHARACTER SET utf8mb4 NOT NULL, " +
	"`process` varchar(255) CHARACTER SET ascii NOT NULL DEFAULT '', " +
	"`since` datetime(6) NOT NULL, `heartbeat` datetime(6) NOT NULL, `version` bigint unsigned NOT NULL, " +
	"`sequences` int unsigned NOT NULL DEFAULT 0, `held` bigint unsigned NOT NULL DEFAULT 0, PRIMARY KEY (`id`)) ENGINE=InnoDB"

// ProxyTable is the table of the proxies that may hold numbers.
type ProxyTable struct{ *Schema }

// Proxy is a proxy that may hold numbers in memory.
type Proxy struct {
	ID    string
	Host  string    // "web3, process 4711"
	Since time.Time // when it registered, in UTC by the sequence server's clock
	// since its last heartbeat; negative if the server's clock went back after it
	Silent    time.Duration
	Version   uint64 // the last change that it obeys
	Sequences uint64 // sequences that it uses
	Cached    uint64 // numbers in its memory at the heartbeat

	Process          string // its [process.Name]
	beat, staleAfter time.Duration
}

// Stale reports whether the proxy has missed heartbeats: it is gone, or cut off.
func (p *Proxy) Stale() bool { return p.Silent > p.staleAfter }

// early reports whether the last heartbeat lies in the future: the server's clock went back, and no
// heartbeat followed.
func (p *Proxy) early() bool { return p.Silent < -p.beat }

// RemoveDead removes the entries of proxies that are certainly dead.
func (t ProxyTable) RemoveDead(ctx context.Context) error {
	all, err := t.List(ctx)
	if err != nil {
		return err
	}
	for _, p := range all {
		if !process.IsDead(p.Process) {
			continue
		}
		if _, err := t.Pool().ExecContext(ctx, "DELETE FROM "+t.Table.Proxies+" WHERE `id` = ?", p.ID); err != nil {
			return err
		}
		t.Log.Info("dead proxy removed", zap.String("proxy", p.Host), zap.Time("since", p.Since))
	}
	return nil
}

func (t ProxyTable) List(ctx context.Context) ([]Proxy, error) {
	return t.ListOn(ctx, t.Pool(), "")
}

// ListOn is List on a connection. The query ends with locking.
func (t ProxyTable) ListOn(ctx context.Context, on link.Querier, locking string) ([]Proxy, error) {
	rows, err := on.QueryContext(ctx, "SELECT `id`, `host`, `process`, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', `since`), "+
		"TIMESTAMPDIFF(MICROSECOND, `heartbeat`, UTC_TIMESTAMP(6)), `version`, `sequences`, `held` FROM "+t.Table.Proxies+" ORDER BY `since`, `id`"+locking)
	if err != nil {
		return nil, fmt.Errorf("read table %s: %w", t.Table.Proxies, err)
	}
	defer func() { _ = rows.Close() }()
	var all []Proxy
	for rows.Next() {
		p := Proxy{beat: t.Config.Beat, staleAfter: t.Config.Stale}
		var since, silent int64
		if err := rows.Scan(&p.ID, &p.Host, &p.Process, &since, &silent, &p.Version, &p.Sequences, &p.Cached); err != nil {
			return nil, fmt.Errorf("read table %s: %w", t.Table.Proxies, err)
		}
		p.Since, p.Silent = time.UnixMicro(since).UTC(), time.Duration(silent)*time.Microsecond
		all = append(all, p)
	}
	return all, rows.Err()
}

// HighestVersion returns the highest version that a proxy says it obeys. It shows a version that
// was lost when only the other tables were restored from a backup.
func (t ProxyTable) HighestVersion(ctx context.Context, tx *sql.Tx) (version uint64, err error) {
	err = tx.QueryRowContext(ctx, "SELECT IFNULL(MAX(`version`), 0) FROM "+t.Table.Proxies).Scan(&version)
	if err != nil {
		return 0, fmt.Errorf("read table %s: %w", t.Table.Proxies, err)
	}
	return version, nil
}

// Registration is this process's entry among the proxies of one server. All members have the same
// id for it.
type Registration struct {
	ID       string
	Host     string
	Anywhere *atomic.Bool // set once this process has registered with any of them: then it must with all

	Making  await.Lock  // locked while the entry is made
	Listed  atomic.Bool // the entry was made: numbers may be reserved
	Missing atomic.Bool // a reservation found no entry
	// The node with the entry, as [link.Nodes] numbers changes. Another node may have lost it.
	On atomic.Uint64
}

func NewRegistration() Registration {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return Registration{Making: await.NewLock(), ID: rand.Text(), Anywhere: new(atomic.Bool), Host: fmt.Sprintf("%s, process %d", host, os.Getpid())}
}

// ListedID returns the id of the entry, empty before it is made.
func (g *Registration) ListedID() string {
	if g.Listed.Load() {
		return g.ID
	}
	return ""
}

// ListProxies writes which proxies are in the way, and the way out for each. lives is the text for
// a live one.
func ListProxies(text *strings.Builder, proxies []Proxy, table string, several bool, lives string) {
	for i, p := range proxies {
		if i > 0 {
			text.WriteString("; ")
		}
		fmt.Fprintf(text, "%s, registered since %s UTC, ", p.Host, p.Since.Format(time.DateTime))
		remove := fmt.Sprintf("if it is gone for good: DELETE FROM %s WHERE id = '%s'", table, p.ID)
		if several {
			remove += ", on each sequence server"
		}
		switch {
		case p.early():
			fmt.Fprintf(text, "whose last sign of life is %v in the future: the sequence server's clock went back since, and nobody can tell for how long it has been silent "+
				"(set that clock right, and try again; %s)", -p.Silent.Round(100*time.Millisecond), remove)
		case p.Stale():
			fmt.Fprintf(text, "silent for %v (%s)", p.Silent.Round(100*time.Millisecond), remove)
		default:
			fmt.Fprintf(text, "which lives, or did %v ago, %s", max(p.Silent, 0).Round(100*time.Millisecond), lives)
		}
	}
}

// RegisteredError says that a sequence is not restarted, because other proxies are registered and
// may hold numbers of it.
type RegisteredError struct {
	Sequence string
	Table    string  // "`app`.`sequence_proxy`"
	Proxies  []Proxy // the others
}

func (e *RegisteredError) Error() string {
	return fmt.Sprintf("sequence %q is not restarted and continues where it was, because other proxies are registered and may hold numbers of it: %s", e.Sequence, e.List())
}

// List names the others, and the way out for each.
func (e *RegisteredError) List() string {
	var text strings.Builder
	ListProxies(&text, e.Proxies, e.Table, false, "(stop it first: it leaves the list when it ends)")
	return text.String()
}

// Add enters proxies that a member does not have. They still have to report what they obey.
func (t ProxyTable) Add(ctx context.Context, tx *sql.Tx, theirs []Proxy) error {
	present, err := t.ListOn(ctx, tx, "")
	if err != nil {
		return err
	}
	for i := range theirs {
		o := &theirs[i]
		if slices.ContainsFunc(present, func(p Proxy) bool { return p.ID == o.ID }) {
			continue // it sends heartbeats there, which must not wait for this
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO "+t.Table.Proxies+" (`id`, `host`, `process`, `since`, `heartbeat`, `version`, `sequences`, `held`) VALUES (?, ?, ?, "+
			"TIMESTAMPADD(MICROSECOND, ?, '1970-01-01'), TIMESTAMPADD(MICROSECOND, ?, UTC_TIMESTAMP(6)), 0, ?, ?) ON DUPLICATE KEY UPDATE `id` = VALUES(`id`)",
			o.ID, o.Host, o.Process, o.Since.UnixMicro(), -o.Silent.Microseconds(), o.Sequences, o.Cached)
		if err != nil {
			return fmt.Errorf("enter a proxy on %s that is registered with another sequence server: %w", t.Name(), err)
		}
	}
	return nil
}

// MergeProxies lists each once. It obeys what it told any member.
func MergeProxies(lists [][]Proxy) (all []Proxy) {
	byID := make(map[string]int)
	for _, list := range lists {
		for _, p := range list {
			i, ok := byID[p.ID]
			switch {
			case !ok:
				byID[p.ID] = len(all)
				all = append(all, p)
			default:
				p.Version = max(p.Version, all[i].Version)
				if p.Silent > all[i].Silent {
					p.Silent = all[i].Silent
				}
				all[i] = p
			}
		}
	}
	slices.SortStableFunc(all, func(x, y Proxy) int { return x.Since.Compare(y.Since) })
	return all
}

// OtherProxies returns the other registered proxies. The query ends with locking.
func (st *Store) OtherProxies(ctx context.Context, on link.Querier, locking string) ([]Proxy, error) {
	all, err := st.Proxies.ListOn(ctx, on, locking)
	return slices.DeleteFunc(all, func(p Proxy) bool { return p.ID == st.Registry.ID }), err
}

// RefuseOthers keeps other proxies from registering until the transaction ends. It fails if one is
// registered.
func (st *Store) RefuseOthers(ctx context.Context, tx *sql.Tx, name string) error {
	others, err := st.OtherProxies(ctx, tx, " FOR UPDATE")
	if err != nil {
		return err
	}
	if len(others) > 0 {
		return &RegisteredError{Sequence: name, Table: st.Table.Proxies, Proxies: others}
	}
	return nil
}
