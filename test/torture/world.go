package torture

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"
	"golang.org/x/sync/errgroup"

	"seqproxy/internal/child"
	"seqproxy/internal/mysqld"
	"seqproxy/test/network"
)

// allocateTimeout is that of the proxies: no client waits longer for a key.
const allocateTimeout = 2 * time.Second

// part is something that can be broken: "proxy 0", "server sequence".
type part string

func proxyPart(i int) part   { return part(fmt.Sprintf("proxy %d", i)) }
func (s *server) part() part { return part("server " + s.name) }
func linkPart(proxy int, s *server) part {
	if s.shared {
		return part("network of " + s.name)
	}
	return part(fmt.Sprintf("link of proxy %d to %s", proxy, s.name))
}

// server is a database server, for sequences or as a shard.
type server struct {
	*mysqld.Server
	name string
	// shared: one of several sequence servers, which the plan names by one address for all proxies.
	shared  bool
	galera  bool             // a node of the cluster
	cluster []*mysqld.Server // all of its nodes
	group   *group           // the group that the node is in, if any
	schema  string           // of the shard's tables, or of the sequence table
	db      *sql.DB
}

// world is the installation under torture.
type world struct {
	opts     Options
	estate   estate
	remark   string // on how the installation differs from what was asked for
	clocks   string // the library that makes the clocks of sequence servers jump; "" if they do not
	zones    string // the directory of a time zone with short days
	settable bool   // the clocks of proxies can be set
	dir      string
	clock    clock
	trouble  *trouble
	sequence *server   // the first of members
	members  []*server // the sequence servers; of a cluster or group the first node
	nodes    []*server // the same, and of a cluster or group all nodes
	shards   []*server
	proxies  []*proxy
	links    map[part]*network.Link
	caches   []string // of each proxy's configuration, for the report
	probes   atomic.Int64
	operator *operator // of a cluster, else nil
	group    *group    // of a primary and replicas, else nil
	disks    []string  // state directories that are small disks
	quiet    quiet
	// stepping is locked by applications while they count in steps, because the number of servers
	// must not change meanwhile.
	stepping sync.RWMutex
}

// schemaOfSequences has the sequence table and the ticket tables.
const schemaOfSequences = "seqproxy"

func (w *world) servers() []*server { return slices.Concat(w.nodes, w.shards) }

// sequenceParts are what a proxy needs for numbers.
func (w *world) sequenceParts(proxy int) (parts []part) {
	for _, s := range w.nodes {
		parts = append(parts, s.part(), linkPart(proxy, s))
	}
	switch {
	case w.galera():
		parts = append(parts, clusterPart)
	case w.grouped():
		parts = append(parts, groupPart)
	}
	return parts
}

// newWorld starts everything. close ends what it started, also after an error.
func newWorld(ctx context.Context, o Options, dir string, rng *rand.Rand) (w *world, err error) {
	w = &world{opts: o, dir: dir, clock: clock{time.Now()}, links: make(map[part]*network.Link)}
	w.trouble = &trouble{clock: w.clock}
	if w.estate, w.remark, err = chooseEstate(o.Estate, o.Seed, o.Server); err != nil {
		return w, err
	}
	w.chooseClocks()
	if err := w.makeDays(rand.New(rand.NewPCG(o.Seed, 2))); err != nil {
		return w, err
	}
	for i := range w.estate.servers {
		w.members = append(w.members, &server{name: fmt.Sprintf("sequence%d", i), shared: w.estate.servers > 1, schema: schemaOfSequences})
	}
	if w.nodes = w.members; w.galera() {
		w.nodes = nil
		for i := range galeraNodes {
			w.nodes = append(w.nodes, &server{name: fmt.Sprintf("node%d", i), galera: true, schema: schemaOfSequences})
		}
		w.members = w.nodes[:1]
	} else if w.estate.replicated > 0 {
		w.nodes = nil
		for i := range w.estate.replicated {
			w.nodes = append(w.nodes, &server{name: fmt.Sprintf("node%d", i), schema: schemaOfSequences})
		}
		w.members = w.nodes[:1]
	}
	w.sequence = w.members[0]
	for i := range 2 {
		if o.keysOnly {
			break
		}
		w.shards = append(w.shards, &server{name: fmt.Sprintf("shard%d", i), schema: fmt.Sprintf("album%d", i)})
	}
	starting, startCtx := errgroup.WithContext(ctx)
	alone := w.servers()
	switch {
	case w.galera():
		alone = w.shards
		starting.Go(func() error { return w.startGalera(startCtx, o.Server) })
	case w.estate.replicated > 0:
		alone = w.shards
		starting.Go(func() error { return w.startGroup(startCtx, o.Server) })
	}
	for _, s := range alone {
		starting.Go(func() error { return s.start(startCtx, w) })
	}
	if err := starting.Wait(); err != nil {
		return w, err
	}
	if err := w.define(ctx); err != nil {
		return w, err
	}
	for i := range o.Proxies {
		p := &proxy{
			number: i, binary: o.Seqproxy, dir: dir, zones: w.zones, config: filepath.Join(dir, fmt.Sprintf("proxy%d.toml", i)), state: filepath.Join(dir, fmt.Sprintf("state%d", i)),
		}
		if w.settable {
			p.clock = filepath.Join(dir, fmt.Sprintf("clock%d", i))
			if err := p.setClock(0); err != nil {
				return w, err
			}
		}
		small, err := smallDisk(p.state)
		if err != nil {
			return w, err
		}
		if small {
			w.disks = append(w.disks, p.state)
		}
		if p.addr, err = child.FreeAddr(); err != nil {
			return w, err
		}
		for _, s := range w.servers() {
			if w.links[linkPart(i, s)] != nil {
				continue
			}
			if w.links[linkPart(i, s)], err = network.NewLink(s.Addr()); err != nil {
				return w, err
			}
		}
		if err := os.WriteFile(p.config, []byte(w.config(p, rng)), 0o600); err != nil {
			return w, err
		}
		if err := p.start(ctx); err != nil {
			return w, err
		}
		w.proxies = append(w.proxies, p)
	}
	if !w.opts.keysOnly && !w.smallDisks() {
		w.remarkOn("NO FULL DISKS: to make one for the state of each proxy takes Linux and root")
	}
	return w, nil
}

func (s *server) start(ctx context.Context, w *world, more ...string) (err error) {
	binary := w.opts.Server
	// A process is killed, never the machine: written data survive without waiting for the disk.
	unsynced := "--debug-no-sync"
	if binary.Flavour == mysqld.MySQL {
		unsynced = "--innodb-flush-method=nosync"
	}
	cfg := mysqld.Config{Binary: binary, Dir: filepath.Join(w.dir, s.name), SkipNameResolve: true, ExtraArgs: []string{unsynced}}
	if s.schema == schemaOfSequences {
		cfg.ClockLibrary = w.clocks
	}
	cfg.ExtraArgs = append(cfg.ExtraArgs, more...)
	s.Server, err = mysqld.Start(ctx, cfg)
	if err != nil {
		return err
	}
	return s.open()
}

// open makes the connection to the server itself.
func (s *server) open() error {
	cfg := mysql.NewConfig()
	cfg.User, cfg.Net, cfg.Addr, cfg.Logger = "root", "tcp", s.Addr(), &mysql.NopLogger{}
	cfg.Timeout, cfg.ReadTimeout, cfg.WriteTimeout = 5*time.Second, clientPatience, clientPatience
	if s.galera {
		// Reads see what the other nodes have committed.
		cfg.Params = map[string]string{"wsrep_sync_wait": "1"}
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return err
	}
	s.db = sql.OpenDB(connector)
	s.db.SetMaxIdleConns(0) // a connection that was killed with the server must not cause an error
	return nil
}

// define makes the tables. A proxy makes the sequences that are more than a row, as users do.
func (w *world) define(ctx context.Context) error {
	for _, s := range w.shards {
		for _, text := range []string{
			"CREATE DATABASE " + s.schema,
			"CREATE TABLE " + s.schema + ".photos (id bigint unsigned PRIMARY KEY, tag varchar(40) NOT NULL) ENGINE=InnoDB",
			"CREATE TABLE " + s.schema + ".users (id bigint unsigned AUTO_INCREMENT PRIMARY KEY, tag varchar(40) NOT NULL) ENGINE=InnoDB",
		} {
			if _, err := s.db.ExecContext(ctx, text); err != nil {
				return fmt.Errorf("%s: %s: %w", s.name, text, err)
			}
		}
	}
	if w.several() {
		// The proxies divide the numbers among servers that have none yet, and a proxy makes the
		// sequences.
		for _, s := range w.members {
			if _, err := s.db.ExecContext(ctx, "CREATE DATABASE "+schemaOfSequences); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
		return nil
	}
	texts := []string{
		"CREATE DATABASE " + schemaOfSequences,
		"CREATE TABLE seqproxy.sequence (name varchar(50) NOT NULL PRIMARY KEY, id bigint unsigned NOT NULL DEFAULT 0) ENGINE=InnoDB",
		"CREATE TABLE seqproxy.tickets64 (id bigint unsigned AUTO_INCREMENT PRIMARY KEY, stub char(1) NOT NULL DEFAULT '', UNIQUE KEY (stub)) ENGINE=InnoDB",
	}
	for _, name := range plainSequences {
		if !slices.Contains(w.sequences(), name) {
			continue
		}
		texts = append(texts, "INSERT INTO seqproxy.sequence VALUES ('"+name+"', 0)")
	}
	for _, text := range texts {
		if _, err := w.sequence.db.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	return nil
}

// config returns a proxy's configuration. Small segments make many reservations, large ones much
// that a crash can lose or give again.
func (w *world) config(p *proxy, rng *rand.Rand) string {
	size := []string{"5", "50", "500"}[rng.IntN(3)] + "/" + []string{"0s", "200ms", "2s"}[rng.IntN(3)]
	if w.opts.cache != "" {
		size = w.opts.cache
	}
	w.caches = append(w.caches, size)
	cache, cover, _ := strings.Cut(size, "/")
	var text strings.Builder
	if len(w.shards) > 0 {
		fmt.Fprintf(&text, "default_shard = %q\n", w.shards[0].name)
	}
	fmt.Fprintf(&text, `listen = %q
http.listen = ""
admin.listen = ""
admin_users = ["root"]
connect_timeout = "2s"
failed_login_exempt = ["127.0.0.0/8"]
[drain]
timeout = "3s"
[log]
format = "json"
level = "debug"
[[user]]
name = "root"
[sequence]
database = %q
state_dir = %q
cache = %s
outage_cover = %q
allocate_timeout = %q
interleave = %q
direct_writers = %v
`, p.addr, schemaOfSequences, p.state, cache, cover, allocateTimeout, cmp.Or(w.estate.interleave, "block"), w.estate.directWriters())
	where := make([]string, len(w.nodes))
	for i, s := range w.nodes {
		where[i] = fmt.Sprintf("%q", w.links[linkPart(p.number, s)].Addr())
	}
	switch {
	case w.galera():
		fmt.Fprintf(&text, "[[sequence.server]]\nnodes = [%s]\nuser = \"root\"\n", strings.Join(where, ", "))
	case w.grouped():
		fmt.Fprintf(&text, "[[sequence.server]]\nnodes = [%s]\nuser = %q\n", strings.Join(where, ", "), account)
	default:
		fmt.Fprintf(&text, "[[sequence.server]]\naddress = %s\nuser = \"root\"\n", where[0])
	}
	if w.plain() {
		fmt.Fprint(&text, "[[ticket]]\ntable = \"seqproxy.sequence\"\n[[ticket]]\ntable = \"seqproxy.tickets64\"\n")
	}
	if len(w.shards) == 0 {
		return text.String()
	}
	fmt.Fprint(&text, "[[bind]]\ncolumn = \"users.id\"\nsequence = \"users\"\n")
	shards := w.shards
	if len(w.nodes) == len(w.members) {
		shards = append([]*server{w.sequence}, shards...)
	}
	for _, s := range shards {
		fmt.Fprintf(&text, "[[shard]]\nname = %q\nschemas = [%q]\n[[shard.node]]\naddress = %q\n", s.name, s.schema, w.links[linkPart(p.number, s)].Addr())
	}
	return text.String()
}

// admin runs statements on a proxy, one after the other on one connection.
func (w *world) admin(ctx context.Context, p *proxy, texts ...string) error {
	db, err := open(p.addr, "", false)
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // every statement was answered
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("proxy %d: %w", p.number, err)
	}
	defer conn.Close() //nolint:errcheck // as above
	for _, text := range texts {
		if _, err := conn.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("proxy %d: %s: %w", p.number, text, err)
		}
	}
	return nil
}

// rows returns the counters of the table, without those of ticket tables.
func (s *server) rows(ctx context.Context) (map[string]uint64, error) {
	rows, err := s.db.QueryContext(ctx, "SELECT name, id FROM seqproxy.sequence")
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err tells
	all := make(map[string]uint64)
	for rows.Next() {
		var name string
		var id uint64
		if err := rows.Scan(&name, &id); err != nil {
			return nil, err
		}
		all[name] = id
	}
	return all, rows.Err()
}

// crashed returns which processes ended by themselves.
func (w *world) crashed() error {
	var all []error
	for _, p := range w.proxies {
		all = append(all, p.crashed())
	}
	for _, s := range w.servers() {
		if s.Server == nil {
			continue
		}
		if err := s.Crashed(); err != nil {
			all = append(all, fmt.Errorf("server %s: %w", s.name, err))
		}
	}
	return errors.Join(all...)
}

// close ends all processes and links, in any state.
func (w *world) close() error {
	if w.operator != nil {
		w.operator.end()
	}
	var wait sync.WaitGroup
	errs := make(chan error, 16)
	for _, p := range w.proxies {
		wait.Go(func() {
			_ = p.signal(syscall.SIGCONT)
			_ = p.end(syscall.SIGKILL, 5*time.Second)
		})
	}
	for _, s := range w.servers() {
		if s.Server == nil {
			continue
		}
		wait.Go(func() {
			_ = syscall.Kill(s.PID(), syscall.SIGCONT)
			if s.db != nil {
				_ = s.db.Close()
			}
			ctx, stop := context.WithTimeout(context.Background(), time.Minute)
			defer stop()
			if s.galera { // in order they would wait for each other
				_ = s.Kill()
			}
			if err := s.Stop(ctx); err != nil {
				errs <- err
			}
		})
	}
	for _, l := range w.links {
		if l != nil {
			wait.Go(l.Close)
		}
	}
	wait.Wait()
	close(errs)
	var all []error
	for _, dir := range w.disks {
		all = append(all, endDisk(dir))
	}
	for err := range errs {
		all = append(all, err)
	}
	return errors.Join(all...)
}

// open returns a client's connection to a proxy or server.
func open(addr, schema string, interpolate bool) (*sql.DB, error) {
	cfg := mysql.NewConfig()
	cfg.User, cfg.Net, cfg.Addr, cfg.DBName, cfg.Logger = "root", "tcp", addr, schema, &mysql.NopLogger{}
	cfg.Timeout, cfg.ReadTimeout, cfg.WriteTimeout = clientPatience, clientPatience, clientPatience
	cfg.InterpolateParams = interpolate
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	return db, nil
}

// A signal after the server is gone hits no other process: the process is waited for, and pids are
// not reused that soon.
func (s *server) signal(sig syscall.Signal) error {
	if err := syscall.Kill(s.PID(), sig); err != nil {
		return fmt.Errorf("server %s: %w", s.name, err)
	}
	return nil
}
