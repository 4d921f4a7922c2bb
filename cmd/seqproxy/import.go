package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"go.uber.org/zap"

	"seqproxy/conf"
	"seqproxy/internal/tlsfiles"
	"seqproxy/sequence"
)

// importCommand has the flags of import.
type importCommand struct {
	*command
	file, from, user, passwordFile, passwordEnv, tls, caFile string
	tables, schemas, sources                                 []string
	adaptive, dryRun                                         bool

	readOnly []string // the sources that were read, and cannot be written to
}

func newImportCommand() *importCommand {
	c := &importCommand{command: newCommand("import")}
	c.StringVar(&c.file, "config", "", "configuration `FILE`, which names the sequence server")
	c.StringVar(&c.from, "from", "", "`KIND` of counters: "+importKinds())
	several := func(list *[]string) func(string) error {
		return func(value string) error {
			*list = append(*list, value)
			return nil
		}
	}
	c.Func("schema", "`NAME` of the schema that holds them; may be given again: of counters of one name the highest counts", several(&c.schemas))
	c.Func("table", "`TABLE`, or TABLE=NAME to name the sequence otherwise; may be given again. Without it the kind's own table, or all of the kind", several(&c.tables))
	c.Func("source", "`HOST:PORT` or unix:/PATH of the server that has them (default the sequence server); may be given again, as schema", several(&c.sources))
	c.StringVar(&c.user, "user", "", "`NAME` to log in with there (with -source)")
	c.StringVar(&c.passwordFile, "password-file", "", "`FILE` with the user's password (with -source)")
	c.StringVar(&c.passwordEnv, "password-env", "", "`NAME` of the environment variable with the user's password (with -source)")
	c.StringVar(&c.tls, "tls", "", "`MODE` of TLS there, as tls of a [[shard]] (with -source)")
	c.StringVar(&c.caFile, "tls-ca-file", "", "`FILE` with the CA that signed the server's certificate (with -source)")
	c.BoolVar(&c.adaptive, "adaptive", false, "let seqproxy choose how many numbers it keeps, instead of taking CACHE over")
	c.BoolVar(&c.dryRun, "dry-run", false, "change nothing, say what would be done")
	return c
}

// importTimeout bounds the reading of one counter, and each change.
const importTimeout = 30 * time.Second

// counter is a counter that becomes a sequence.
type counter struct {
	name  string // of the sequence
	from  string // "app.leaf_alloc"
	next  uint64 // the next unused number
	cache uint64 // CACHE; 0 means adaptive
	// from a sequence of MariaDB; 0 means the default
	increment, max uint64
	cannot         string // why no sequence can replace it
	end            uint64 // the greatest number of the table's column; 0 means unknown
	uncounted      bool   // it is a table without AUTO_INCREMENT

	place         *place // where it was read
	schema, table string // the table that counts
	lossy         string // why its server's crash could set it back
}

// place is a schema of a server with counters.
type place struct {
	source *source
	server string // as in -source; "" is the sequence server
	schema string
}

// importCounters makes sequences of another system's counters. It only creates and raises
// sequences. So it may be run again, and for one server after the other.
func (p *program) importCounters(ctx context.Context, args []string) error {
	c := newImportCommand()
	if err := c.parse(args, p.out); err != nil {
		return err
	}
	if err := noMore("import -config FILE -from KIND -schema NAME", c.Args()); err != nil {
		return err
	}
	read, err := c.check()
	if err != nil {
		return err
	}
	cfg, err := conf.Load(c.file)
	if err != nil {
		return err
	}
	files := tlsfiles.NewStore(zap.NewNop())
	counters, done, err := c.read(ctx, cfg, files, read)
	defer done()
	if err != nil {
		return err
	}
	opts, err := sequenceOptions(cfg, files, zap.NewNop())
	if err != nil {
		return err
	}
	opts.AllocateTimeout = importTimeout
	opts.StateDir = "" // it belongs to a running proxy; import reserves nothing
	opts.LookOnly = c.dryRun
	sequences, err := sequence.New(opts)
	if err != nil {
		return fmt.Errorf("sequences: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), importTimeout)
		defer cancel()
		_ = sequences.Close(ctx) // nothing was reserved, so nothing is given back
	}()
	return p.makeSequences(ctx, c, sequences, counters)
}

// read reads the counters of all places. done closes the connections.
func (c *importCommand) read(ctx context.Context, cfg *conf.Config, files *tlsfiles.Store, read reader) (all []counter, done func(), err error) {
	var opened []*source
	done = func() {
		for _, s := range opened {
			s.close()
		}
	}
	servers := c.sources
	if len(servers) == 0 {
		servers = []string{""}
	}
	found := make(map[string]bool)
	addresses := make([]string, 0, len(servers))
	for _, server := range servers {
		of, login, err := c.origin(cfg, server)
		if err != nil {
			return nil, done, err
		}
		source, address, err := openWritable(ctx, files, of, login)
		if err != nil {
			return nil, done, err
		}
		opened, addresses = append(opened, source), append(addresses, string(address))
		switch readOnly, err := source.readOnly(ctx); {
		case err != nil:
			return nil, done, fmt.Errorf("read from %s: %w", address, err)
		case readOnly:
			c.readOnly = append(c.readOnly, string(address))
		}
		for _, schema := range c.schemas {
			// A missing table is an error: its counter may be the highest.
			if len(servers)*len(c.schemas) > 1 {
				switch exists, err := source.has(ctx, schema); {
				case err != nil:
					return nil, done, fmt.Errorf("read from %s: %w", address, err)
				case !exists:
					continue
				}
			}
			found[schema] = true
			counters, err := read(ctx, source, schema, c.tables)
			if err != nil {
				return nil, done, fmt.Errorf("read from %s: %w", address, err)
			}
			for i := range counters {
				n := &counters[i]
				n.place = &place{source, server, schema}
				if len(servers) > 1 {
					n.from += " at " + server
				}
			}
			all = append(all, counters...)
		}
	}
	for _, schema := range c.schemas {
		if !found[schema] {
			return nil, done, fmt.Errorf("there is no schema %s on %s, or the user may not see it", schema, strings.Join(addresses, ", "))
		}
	}
	if c.from != "ticket" { // ticket tables are raised one by one
		all = merged(all)
	}
	if len(all) == 0 {
		return nil, done, fmt.Errorf("the schema %s on %s holds no counter of the kind %q", strings.Join(c.schemas, ", "), strings.Join(addresses, ", "), c.from)
	}
	return all, done, nil
}

// merged merges counters with the same sequence name. The highest counts, since all numbers above
// it are unused. If nothing counts in a table, it is left out, unless a table of its name counts
// elsewhere: its keys may be the highest.
func merged(all []counter) []counter {
	counts := make(map[string]bool)
	for i := range all {
		counts[all[i].name] = counts[all[i].name] || !all[i].uncounted
	}
	of := make(map[string]int)
	var kept []counter
	for i := range all {
		n := &all[i]
		if !counts[n.name] {
			continue
		}
		if n.uncounted {
			n.cannot = n.from + " has no AUTO_INCREMENT, so its keys are not read: " + makeYourself(n.name)
		}
		at, twice := of[n.name]
		if !twice {
			of[n.name] = len(kept)
			kept = append(kept, *n)
			continue
		}
		k := &kept[at]
		if k.increment != n.increment {
			k.cannot = fmt.Sprintf("its increment is %d in %s, and %d in %s", k.increment, k.from, n.increment, n.from)
		}
		k.from += ", " + n.from
		k.next, k.cache, k.max, k.cannot = max(k.next, n.next), max(k.cache, n.cache), max(k.max, n.max), cmp.Or(k.cannot, n.cannot)
		k.end = min(cmp.Or(k.end, n.end), cmp.Or(n.end, k.end))
	}
	return kept
}

// tlsModes are the values of -tls.
var tlsModes = []tlsfiles.Mode{tlsfiles.Disabled, tlsfiles.Preferred, tlsfiles.Required, tlsfiles.VerifyCA, tlsfiles.VerifyIdentity}

// check refuses wrong flags and returns the reader for the kind.
func (c *importCommand) check() (reader, error) {
	read := readers[c.from]
	switch {
	case c.file == "":
		return nil, usagef("import needs -config FILE")
	case c.from == "":
		return nil, usagef("import needs -from KIND: %s", importKinds())
	case read == nil:
		return nil, usagef("-from must be %s, is %q", importKinds(), c.from)
	case len(c.schemas) == 0:
		return nil, usagef("import needs -schema NAME: where the counters are")
	case c.from == "ticket" && len(c.tables) == 0:
		return nil, usagef("-from ticket needs -table NAME for each ticket table: nothing tells them from other tables")
	case len(c.sources) == 0 && (c.user != "" || c.passwordFile != "" || c.passwordEnv != "" || c.tls != "" || c.caFile != ""):
		return nil, usagef("-user, -password-file, -password-env, -tls and -tls-ca-file go with -source")
	case len(c.sources) > 0 && c.user == "":
		return nil, usagef("-source needs -user NAME")
	case c.tls != "" && !slices.Contains(tlsModes, tlsfiles.Mode(c.tls)):
		return nil, usagef("-tls must be one of %s, is %q", tlsModes, c.tls)
	case c.passwordFile != "" && c.passwordEnv != "":
		return nil, usagef("-password-file and -password-env exclude each other")
	}
	return read, nil
}

// origin opens the server with the counters, or the nodes of the group for "".
func (c *importCommand) origin(cfg *conf.Config, address string) ([]conf.Address, sourceLogin, error) {
	server := &cfg.Sequence.Servers[0]
	if address == "" {
		return server.Addresses(), sourceLogin{server.User, server.Password, server.Security}, nil
	}
	login := sourceLogin{user: c.user, security: conf.Security{Mode: tlsfiles.Mode(c.tls), CAFile: c.caFile}}
	switch {
	case c.passwordFile != "":
		password, _, err := conf.ReadPasswordFile(c.passwordFile)
		if err != nil {
			return nil, login, fmt.Errorf("-password-file: %w", err)
		}
		login.password = password
	case c.passwordEnv != "":
		password, ok := os.LookupEnv(c.passwordEnv)
		if !ok {
			return nil, login, usagef("-password-env: the environment variable %s is not set", c.passwordEnv)
		}
		login.password = conf.NewSecret(password)
	}
	return []conf.Address{conf.Address(address)}, login, nil
}

// makeSequences makes a sequence of each counter and prints the outcome. It continues after a
// failure, and stops when ctx ends.
func (p *program) makeSequences(ctx context.Context, c *importCommand, sequences *sequence.Sequences, counters []counter) error {
	table := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "SEQUENCE\tNEXT\tCACHE\tFROM\t")
	var done importCount
	var failures []error
	var interrupted error
	var lossy []string
	for i := range counters {
		n := &counters[i]
		if c.adaptive {
			n.cache = 0
		}
		var what string
		var err error
		if c.from == "ticket" {
			what, err = done.takeOver(ctx, c, sequences, n)
			if n.lossy != "" {
				lossy = append(lossy, n.from+": "+n.lossy)
			}
		} else {
			what, err = done.make(ctx, sequences, n, c.dryRun)
		}
		if err != nil && ctx.Err() != nil {
			interrupted = fmt.Errorf("interrupted after %d of %d counters: run it again for the others", i, len(counters))
			break
		}
		if err != nil {
			what = "FAILED"
			failures = append(failures, fmt.Errorf("sequence %s of %s: %w", n.name, n.from, err))
		}
		cache := "adaptive"
		if n.cache != 0 {
			cache = fmt.Sprint(n.cache)
		}
		_, _ = fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\n", n.name, n.next, cache, n.from, what)
	}
	_ = table.Flush()
	would := ""
	if c.dryRun {
		would = "to be "
	}
	for _, address := range c.readOnly {
		p.say("%s is read only: if it is a replica, its counters may be behind, so import from its primary, too\n", address)
	}
	for _, why := range lossy {
		p.say("%s, so a crash of its server may take the counter back: import it again after one, before anybody takes a number of it\n", why)
	}
	p.say("\n%d %screated, %d %sraised, %d there already, %d failed\n", done.created, would, done.raised, would, done.stayed, len(failures))
	if c.dryRun {
		p.say("nothing was changed: this was a dry run\n")
	}
	return errors.Join(append(failures, interrupted)...)
}

// importCount counts what was done, or what would be done.
type importCount struct{ created, raised, stayed int }

// make makes one sequence, or says what it would do. The result is the text of the last column.
func (d *importCount) make(ctx context.Context, sequences *sequence.Sequences, n *counter, dry bool) (what string, err error) {
	ctx, cancel := context.WithTimeout(ctx, importTimeout)
	defer cancel()
	if n.cannot != "" {
		return "", errors.New(n.cannot)
	}
	if n.end != 0 && n.next > n.end {
		return "", fmt.Errorf("a column ends at %d, below %d: make it wider, ALTER TABLE ... MODIFY ... BIGINT UNSIGNED", n.end, n.next)
	}
	if n.next == 0 {
		n.next = 1
	}
	// A BIGINT ends beyond all that is ever given.
	if n.end < math.MaxInt64 {
		n.max = cmp.Or(n.max, n.end)
	}
	at, limit, exists, err := nextOf(ctx, sequences, n.name)
	if err != nil {
		return "", err
	}
	if !exists {
		made, err := sequences.Create(ctx, sequence.CreateOptions{
			Name: n.name, Start: n.next, Cache: n.cache, Increment: n.increment, Max: n.max, DryRun: dry,
		})
		existed := errors.Is(err, sequence.ErrExists) // somebody else has just created it
		if err != nil && !existed {
			return "", err
		}
		if dry && !existed {
			d.created++
			return "would be created", nil
		}
		if !existed {
			d.created++
			if made.First > n.next {
				return fmt.Sprintf("created, begins at %d: a sequence of that name may have given numbers up to %d", made.First, made.Given), nil
			}
			return "created", nil
		}
		if at, limit, _, err = nextOf(ctx, sequences, n.name); err != nil {
			return "", err
		}
	}
	note := ""
	if n.end != 0 && n.max != 0 && n.max < limit {
		note = fmt.Sprintf("; ALTER SEQUENCE %s MAXVALUE %d has it end where its column does", quoteName(n.name), n.max)
	}
	switch {
	case at != 0 && n.next-1 > limit:
		return "", fmt.Errorf("it is there already and ends at %d, below %d: ALTER SEQUENCE with a higher MAXVALUE", limit, n.next)
	case dry && at != 0 && at < n.next:
		d.raised++
		return "would be raised" + fromNext(at) + note, nil
	case !dry && at != 0:
		// Proxies may have lower numbers in memory, even if the row is above.
		if _, err := sequences.Raise(ctx, []byte(n.name), n.next-1); err != nil {
			return "", err
		}
	}
	if at != 0 && at < n.next {
		d.raised++
		return "raised" + fromNext(at) + note, nil
	}
	d.stayed++
	return "is there already" + atNext(at) + note, nil
}

// takeOver makes the sequence of a ticket table, or says what it would do. From then on the table's
// own counter starts above the sequence's end.
func (d *importCount) takeOver(ctx context.Context, c *importCommand, sequences *sequence.Sequences, n *counter) (what string, err error) {
	ctx, cancel := context.WithTimeout(ctx, importTimeout)
	defer cancel()
	conn, err := n.place.source.db.Conn(ctx)
	if err != nil {
		return "", tlsfiles.Explain(err)
	}
	defer func() { _ = conn.Close() }()
	from := quoteName(n.schema, n.table)
	if n.place.server != "" {
		from += " at " + n.place.server
	}
	done, err := sequences.ImportTickets(ctx, conn, sequence.TicketImport{
		Database: n.schema, Table: n.table, From: from, Sequence: n.name, DryRun: c.dryRun, Next: n.next,
	})
	n.next, n.lossy = done.Next, done.Lossy
	if unfit := new(sequence.UnfitError); errors.As(err, &unfit) && unfit.Server == "" {
		return "", fmt.Errorf("%w (-from table makes a sequence of such a table, and does not raise its counter)", err)
	}
	if err != nil {
		return "", err
	}
	would := ""
	if c.dryRun {
		would = "would be "
	}
	above := fmt.Sprintf("; the table goes on above %d", done.Last)
	switch {
	case done.Created:
		d.created++
		return would + "created" + above, nil
	case done.Raised:
		d.raised++
		return would + "raised" + above, nil
	}
	d.stayed++
	return "is there already" + atNext(done.Next) + above, nil
}

func atNext(n uint64) string {
	if n == 0 {
		return ", at its end"
	}
	return fmt.Sprintf(", at %d", n)
}

func fromNext(n uint64) string { return fmt.Sprintf(" from %d", n) }

// nextOf returns the next number of a sequence, or 0 if none is left, and the sequence's end.
func nextOf(ctx context.Context, sequences *sequence.Sequences, name string) (next, limit uint64, exists bool, err error) {
	d, state, err := sequences.Describe(ctx, []byte(name))
	if errors.Is(err, sequence.ErrUnknown) {
		return 0, 0, false, nil
	}
	if err == nil {
		err = d.Importable()
	}
	return state.Next, state.Limit, err == nil, err
}

// importKinds lists the kinds for messages.
func importKinds() string {
	kinds := make([]string, 0, len(readers))
	for kind := range readers {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return strings.Join(kinds[:len(kinds)-1], ", ") + " or " + kinds[len(kinds)-1]
}
