package main

import (
	"context"
	"errors"
	"fmt"
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

// importCommand is the flags of import.
type importCommand struct {
	*command
	file, from, source, user, passwordFile, passwordEnv, schema, tls, caFile string
	tables                                                                   []string
	adaptive, dryRun                                                         bool
}

func newImportCommand() *importCommand {
	c := &importCommand{command: newCommand("import")}
	c.StringVar(&c.file, "config", "", "configuration `FILE`, which names the sequence server")
	c.StringVar(&c.from, "from", "", "`KIND` of counters: "+importKinds())
	c.StringVar(&c.schema, "schema", "", "`NAME` of the schema that holds them")
	c.Func("table", "`TABLE`, or TABLE=NAME to name the sequence otherwise; may be given again. Without it the kind's own table, or all of the kind", func(t string) error {
		c.tables = append(c.tables, t)
		return nil
	})
	c.StringVar(&c.source, "source", "", "`HOST:PORT` or unix:/PATH of the server that has them (default the sequence server)")
	c.StringVar(&c.user, "user", "", "`NAME` to log in with there (with -source)")
	c.StringVar(&c.passwordFile, "password-file", "", "`FILE` with the user's password (with -source)")
	c.StringVar(&c.passwordEnv, "password-env", "", "`NAME` of the environment variable with the user's password (with -source)")
	c.StringVar(&c.tls, "tls", "", "`MODE` of TLS there, as tls of a [[shard]] (with -source)")
	c.StringVar(&c.caFile, "tls-ca-file", "", "`FILE` with the CA that signed the server's certificate (with -source)")
	c.BoolVar(&c.adaptive, "adaptive", false, "let seqproxy choose how many numbers it keeps, instead of taking CACHE over")
	c.BoolVar(&c.dryRun, "dry-run", false, "change nothing, say what would be done")
	return c
}

// importTimeout bounds the reading of one counter and each change.
const importTimeout = 30 * time.Second

// counter is what is to become a sequence.
type counter struct {
	name  string // of the sequence
	from  string // "app.leaf_alloc"
	next  uint64 // the next number that nobody has got
	cache uint64 // CACHE, 0 for adaptive

	schema, table string // of a table that counts
	lossy         string // why a crash of its server could take it back
}

// importCounters makes sequences of the counters of another system. It only ever
// creates sequences and raises them, so it may be run again, and against several
// servers one after the other.
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
	addresses, login, err := c.origin(cfg)
	if err != nil {
		return err
	}
	source, address, err := openWritable(ctx, files, addresses, login)
	if err != nil {
		return err
	}
	defer source.close()
	counters, err := read(ctx, source, c.schema, c.tables)
	if err != nil {
		return fmt.Errorf("read from %s: %w", address, err)
	}
	if len(counters) == 0 {
		return fmt.Errorf("the schema %s on %s holds no counter of the kind %q", c.schema, address, c.from)
	}
	opts, err := sequenceOptions(cfg, files, zap.NewNop())
	if err != nil {
		return err
	}
	opts.AllocateTimeout = importTimeout
	opts.StateDir = "" // the proxy's that may be running; nothing is taken here
	sequences, err := sequence.New(opts)
	if err != nil {
		return fmt.Errorf("sequences: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), importTimeout)
		defer cancel()
		_ = sequences.Close(ctx) // nothing was taken, so there is nothing to give back
	}()
	return p.makeSequences(ctx, c, sequences, source, counters)
}

// tlsModes are the values of -tls.
var tlsModes = []tlsfiles.Mode{tlsfiles.Disabled, tlsfiles.Preferred, tlsfiles.Required, tlsfiles.VerifyCA, tlsfiles.VerifyIdentity}

// check refuses wrong flags and returns the reader of the kind.
func (c *importCommand) check() (reader, error) {
	read := readers[c.from]
	switch {
	case c.file == "":
		return nil, usagef("import needs -config FILE")
	case c.from == "":
		return nil, usagef("import needs -from KIND: %s", importKinds())
	case read == nil:
		return nil, usagef("-from must be %s, is %q", importKinds(), c.from)
	case c.schema == "":
		return nil, usagef("import needs -schema NAME: where the counters are")
	case c.from == "ticket" && len(c.tables) == 0:
		return nil, usagef("-from ticket needs -table NAME for each ticket table: nothing tells them from other tables")
	case c.source == "" && (c.user != "" || c.passwordFile != "" || c.passwordEnv != "" || c.tls != "" || c.caFile != ""):
		return nil, usagef("-user, -password-file, -password-env, -tls and -tls-ca-file go with -source")
	case c.source != "" && c.user == "":
		return nil, usagef("-source needs -user NAME")
	case c.tls != "" && !slices.Contains(tlsModes, tlsfiles.Mode(c.tls)):
		return nil, usagef("-tls must be one of %s, is %q", tlsModes, c.tls)
	case c.passwordFile != "" && c.passwordEnv != "":
		return nil, usagef("-password-file and -password-env exclude each other")
	}
	return read, nil
}

// origin is the server that holds the counters, or the nodes of the group.
func (c *importCommand) origin(cfg *conf.Config) ([]conf.Address, sourceLogin, error) {
	server := &cfg.Sequence.Servers[0]
	if c.source == "" {
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
	return []conf.Address{conf.Address(c.source)}, login, nil
}

// makeSequences makes a sequence of each counter and prints what it did. One that
// cannot be made stops none of the others.
func (p *program) makeSequences(ctx context.Context, c *importCommand, sequences *sequence.Sequences, source *source, counters []counter) error {
	table := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "SEQUENCE\tNEXT\tCACHE\tFROM\t")
	var done importCount
	var failures []error
	var lossy []string
	for i := range counters {
		n := &counters[i]
		if c.adaptive {
			n.cache = 0
		}
		var what string
		var err error
		if c.from == "ticket" {
			what, err = done.takeOver(ctx, c, sequences, source, n)
			if n.lossy != "" {
				lossy = append(lossy, n.from+": "+n.lossy)
			}
		} else {
			what, err = done.make(ctx, sequences, n, c.dryRun)
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
	for _, why := range lossy {
		p.say("%s, so a crash of its server may take the counter back: import it again after one, before anybody takes a number of it\n", why)
	}
	p.say("\n%d %screated, %d %sraised, %d there already, %d failed\n", done.created, would, done.raised, would, done.stayed, len(failures))
	if c.dryRun {
		p.say("nothing was changed: this was a dry run\n")
	}
	return errors.Join(failures...)
}

// importCount counts what was done, or would be.
type importCount struct{ created, raised, stayed int }

// make makes one sequence, or says what it would do, in words for the last column.
func (d *importCount) make(ctx context.Context, sequences *sequence.Sequences, n *counter, dry bool) (what string, err error) {
	ctx, cancel := context.WithTimeout(ctx, importTimeout)
	defer cancel()
	if n.next == 0 {
		n.next = 1
	}
	at, limit, exists, err := nextOf(ctx, sequences, n.name)
	if err != nil {
		return "", err
	}
	if !exists && dry {
		d.created++
		return "would be created", nil
	}
	if !exists {
		made, err := sequences.Create(ctx, sequence.CreateOptions{Name: n.name, Start: n.next, Cache: n.cache, IfNotExists: true})
		if err != nil {
			return "", err
		}
		if !made.Existed {
			d.created++
			if made.First > n.next {
				return fmt.Sprintf("created, begins at %d: a sequence of that name may have given numbers up to %d", made.First, made.Given), nil
			}
			return "created", nil
		}
		if at, limit, _, err = nextOf(ctx, sequences, n.name); err != nil {
			// made by somebody else just now
			return "", err
		}
	}
	switch {
	case at != 0 && n.next-1 > limit:
		return "", fmt.Errorf("it is there already and ends at %d, below %d: ALTER SEQUENCE with a higher MAXVALUE", limit, n.next)
	case dry && at != 0 && at < n.next:
		d.raised++
		return "would be raised" + fromNext(at), nil
	case !dry && at != 0:
		// Proxies may have lower numbers in memory, also where the row is above.
		if _, err := sequences.Raise(ctx, []byte(n.name), n.next-1); err != nil {
			return "", err
		}
	}
	if at != 0 && at < n.next {
		d.raised++
		return "raised" + fromNext(at), nil
	}
	d.stayed++
	return "is there already" + atNext(at), nil
}

// takeOver makes the sequence of a ticket table, whose own counter goes on above the
// sequence's end from then on, or says what it would do.
func (d *importCount) takeOver(ctx context.Context, c *importCommand, sequences *sequence.Sequences, source *source, n *counter) (what string, err error) {
	ctx, cancel := context.WithTimeout(ctx, importTimeout)
	defer cancel()
	conn, err := source.db.Conn(ctx)
	if err != nil {
		return "", tlsfiles.Explain(err)
	}
	defer func() { _ = conn.Close() }()
	from := quoteName(n.schema, n.table)
	if c.source != "" {
		from += " at " + c.source
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

// nextOf is the next number of a sequence, 0 if none is left, and where it ends.
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
