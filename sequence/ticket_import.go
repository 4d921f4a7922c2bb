package sequence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"seqproxy/internal/await"
	"seqproxy/sequence/define"
	"seqproxy/sequence/link"
	"seqproxy/sequence/segment"
)

// importDistance is how far above its last number a table's counter is raised, at most: more than
// any table gives in its life, and little of 64 bits. A smaller column is parted in halves.
const importDistance = 1 << 40

// importRoom is how many numbers must remain on each side, at least.
const importRoom = 1000

// TicketImport names a ticket table, on any server, whose counter is to become a sequence.
type TicketImport struct {
	Database, Table string
	// From names the table and its server in the comment of the sequence. The same table must have
	// the same name in every import.
	From     string
	Sequence string
	DryRun   bool   // change nothing
	Next     uint64 // with DryRun: the table's next number, as the caller has read it
}

// TicketsImported says what ImportTickets did, or would do.
type TicketsImported struct {
	Created bool   // the sequence was made
	Raised  bool   // the sequence was there; it was raised, or the table's counter was
	Next    uint64 // the next number of the sequence; 0 if none is left
	Last    uint64 // the sequence ends there, and the table's counter goes on above
	// Lossy says why a crash of the table's server could take its counter back; "" if it cannot.
	Lossy string
}

// ImportTickets has a sequence give the numbers behind those that a ticket table gave, and raises
// the table's own counter above the end of the sequence. So applications that go on taking numbers
// of the table get no number that the sequence gives. conn is a connection to the table's server,
// whose session settings are changed.
//
// The table is locked meanwhile. One number is taken of it, which is nobody's. Then:
//   - A new sequence: a row is written far ahead, above which the table goes on. Then the sequence is made,
//     from the number that was taken up to that row. It keeps the step of the table's server, so it never
//     gives a number of another table that takes turns with this one.
//   - A sequence that is there: it is raised above the number that was taken. Then a row is written above
//     its end. At last its comment names the table.
//
// Whatever ends that between two steps, the table gives none of the sequence's numbers that it does
// not give without that; a later call begins again. If the table's counter is above the end of the
// sequence, and its comment does not name the table, nobody can tell which of its numbers the table
// gave: that is an error.
func (s *Sequences) ImportTickets(ctx context.Context, conn *sql.Conn, o TicketImport) (done TicketsImported, err error) {
	nameless := func() string { return "" }
	table := newTicketRef(o.Database, o.Table, nameless, s.opts.Servers[0].IOTimeout)
	lossy, err := setUpSource(ctx, conn, s.timing.Silence)
	if err != nil {
		return done, err
	}
	layout, err := table.readLayout(ctx, conn)
	if err != nil {
		return done, err
	}
	if !layout.transactional() {
		lossy = "its engine is " + layout.engine
	}
	m := ticketImport{TicketImport: o, s: s, max: layout.max}
	if o.DryRun {
		if err := conn.QueryRowContext(ctx, "SELECT @@GLOBAL.auto_increment_increment").Scan(&m.step); err != nil {
			return done, err
		}
		m.first = o.Next
		_, done, err = m.decide(ctx)
	} else {
		done, err = m.carryOut(ctx, &table, conn, layout)
	}
	done.Lossy = lossy
	return done, err
}

// setUpSource sets the session of a connection to a server that may be none of the sequence
// servers. lossy says why the server could lose what it has committed.
func setUpSource(ctx context.Context, conn *sql.Conn, silence time.Duration) (lossy string, err error) {
	if err := link.SetUpSession(ctx, conn, silence); err != nil {
		return "", err
	}
	var readOnly, flush string
	if err := conn.QueryRowContext(ctx, "SELECT @@GLOBAL.read_only, @@GLOBAL.innodb_flush_log_at_trx_commit").Scan(&readOnly, &flush); err != nil {
		return "", fmt.Errorf("read settings: %w", err)
	}
	switch {
	case !link.IsOff(readOnly):
		return "", errors.New("the server is read only: name the primary, where applications take their numbers")
	case flush != "1":
		return "innodb_flush_log_at_trx_commit is " + flush, nil
	}
	return "", nil
}

// ticketImport is one import.
type ticketImport struct {
	TicketImport
	s     *Sequences
	max   uint64 // of the table's column
	step  uint64 // the distance between the table's numbers
	first uint64 // a number that was taken of the table
}

// importStep is what there is to do once a number was taken.
type importStep struct {
	create *CreateOptions    // nil: the sequence is there
	def    define.Definition // of the sequence that is there
	ahead  uint64            // the number to write into the table; 0: nothing is to do
}

// decide looks at the sequence. It changes nothing, and refuses what cannot be done safely.
func (m *ticketImport) decide(ctx context.Context) (importStep, TicketsImported, error) {
	none := importStep{}
	def, state, err := m.s.Describe(ctx, []byte(m.Sequence))
	if errors.Is(err, ErrUnknown) {
		return m.decideNew(ctx)
	}
	if err != nil {
		return none, TicketsImported{}, err
	}
	there := TicketsImported{Next: state.After, Last: state.Limit}
	if err := def.Importable(); err != nil {
		return none, there, err
	}
	switch {
	case m.first > state.Limit && namesSource(def.Comment, m.From):
		return none, there, nil
	case m.first > state.Limit:
		return none, there, fmt.Errorf("the table's counter is at %d, above %d, where the sequence ends, and the sequence's comment names no import that put it there: "+
			"the sequence could give again what the table gave. -table %s=NAME makes another sequence; or DROP SEQUENCE %s, and import again all tables that it was made from",
			m.first, state.Limit, m.Table, quote(def.Name))
	case m.max-min(m.max, state.Limit) < importRoom*m.step:
		return none, there, fmt.Errorf("the sequence ends at %d, and the table's column at %d, with no room above the sequence: "+
			"ALTER SEQUENCE %s MAXVALUE n leaves room, -table %s=NAME makes another sequence", state.Limit, m.max, quote(def.Name), m.Table)
	}
	there.Raised = true
	if after, ok := (segment.Rule{Step: def.Increment, Anchor: def.Start}).Next(m.first, state.Limit); !ok {
		there.Next = 0
	} else if there.Next != 0 {
		there.Next = max(there.Next, after)
	}
	return importStep{def: def, ahead: m.first + ((state.Limit-m.first)/m.step+1)*m.step}, there, nil
}

// decideNew is decide for a sequence that has to be made.
func (m *ticketImport) decideNew(ctx context.Context) (importStep, TicketsImported, error) {
	o := CreateOptions{Name: m.Sequence, Increment: m.step, Comment: withSource("", m.From)}
	limit, err := m.s.limitOfNew(ctx, &o)
	if err != nil {
		return importStep{}, TicketsImported{}, err
	}
	distance := min(importDistance, (m.max-min(m.max, m.first))/2, limit-min(limit, m.first)) / m.step * m.step
	if distance < importRoom*m.step {
		return importStep{}, TicketsImported{}, m.noRoom()
	}
	ahead := m.first + distance
	o.Start, o.Max = m.first+m.step, ahead-m.step
	return importStep{create: &o, ahead: ahead}, TicketsImported{Created: true, Next: o.Start, Last: o.Max}, nil
}

func (m *ticketImport) noRoom() error {
	return fmt.Errorf("the table's counter is at %d of %d: too few numbers are left for a sequence: MODIFY its column to BIGINT UNSIGNED", m.first, m.max)
}

// limitOfNew is the highest number of a new sequence. It refuses what several servers cannot have.
func (s *Sequences) limitOfNew(ctx context.Context, o *CreateOptions) (limit uint64, err error) {
	err = s.servers.under(ctx, func(w *view) error {
		limit = math.MaxUint64
		for _, v := range w.members {
			if seen := v.seen.Load(); seen != nil {
				limit = min(limit, seen.max)
			}
		}
		def := o.definition()
		return w.dividable(&def)
	})
	return limit, err
}

// carryOut locks the table and makes the import.
func (m *ticketImport) carryOut(ctx context.Context, table *ticketRef, conn *sql.Conn, layout *ticketLayout) (done TicketsImported, err error) {
	waiting, stop := halfOf(ctx) // the rest of the time is for what comes next
	defer stop()
	l, err := table.lock(waiting, conn, layout)
	for wait := m.s.timing.importAgain; link.IsConflict(err) && await.Pause(waiting, await.Jitter(wait)); wait = min(2*wait, time.Second) {
		l, err = table.lock(waiting, conn, layout)
	}
	if err != nil {
		return done, fmt.Errorf("lock %s: %w", table.full, err)
	}
	defer func() { err = errors.Join(err, l.unlock(ctx)) }()
	m.step = l.step
	if m.first, err = l.nextUnnamed(ctx); errors.Is(err, ErrExhausted) {
		m.first = m.max
		return done, m.noRoom()
	} else if err != nil {
		return done, err
	}
	do, done, err := m.decide(ctx)
	if err != nil || do.ahead == 0 {
		return done, errors.Join(err, l.forget(ctx, m.first))
	}
	if do.create == nil {
		if _, err := m.s.Raise(ctx, []byte(m.Sequence), m.first); err != nil {
			return done, fmt.Errorf("raise the sequence above what the table gave: %w", err)
		}
	}
	if _, err := l.moveTo(ctx, do.ahead); err != nil {
		return done, fmt.Errorf("raise the counter of %s: %w", table.full, err)
	}
	if err := l.forget(ctx, m.first); err != nil {
		return done, err
	}
	if do.create == nil {
		return done, m.name(ctx, do.def.Comment)
	}
	made, err := m.s.Create(ctx, *do.create)
	if err != nil {
		return done, fmt.Errorf("the table's counter was raised above %d, but the sequence could not be made: %w. Nobody gets the numbers between. "+
			"Another import begins above them; CREATE SEQUENCE %s START WITH %d INCREMENT BY %d MAXVALUE %d uses them",
			do.ahead, err, quote(m.Sequence), do.create.Start, do.create.Increment, do.create.Max)
	}
	done.Next = made.First
	return done, nil
}

// nextUnnamed is next where no stub is at hand: it renews one that the table has.
func (l *lockedTable) nextUnnamed(ctx context.Context) (first uint64, err error) {
	if l.ticketLayout.stub == "" {
		return l.next(ctx)
	}
	err = l.conn.QueryRowContext(ctx, "SELECT "+quote(l.ticketLayout.stub)+" FROM "+l.full+" WHERE "+quote(l.ticketLayout.stub)+
		" IS NOT NULL ORDER BY "+quote(l.id)+" DESC LIMIT 1").Scan(&l.stub)
	empty := errors.Is(err, sql.ErrNoRows)
	if err != nil && !empty {
		return 0, err
	}
	first, err = l.next(ctx)
	if err != nil && empty && !errors.Is(err, ErrExhausted) {
		err = fmt.Errorf("it has no row yet: take a number of it as applications do, and import it then: %w", err)
	}
	return first, err
}

// name writes into the sequence's comment that the table's counter is above its end.
func (m *ticketImport) name(ctx context.Context, comment string) error {
	if namesSource(comment, m.From) {
		return nil
	}
	comment = withSource(comment, m.From)
	if _, err := m.s.Alter(ctx, []byte(m.Sequence), Alteration{Comment: &comment}); err != nil {
		return fmt.Errorf("the table's counter is above the end of the sequence now, but the sequence's comment does not say so, and another import will need that: %w", err)
	}
	return nil
}

// sourcesBegin is what the tables follow in the comment of a sequence that was made from them.
const sourcesBegin = "imported from "

// withSource is a comment that names a table, too.
func withSource(comment, from string) string {
	switch {
	case comment == "":
		return sourcesBegin + from
	case strings.Contains(comment, sourcesBegin):
		return comment + ", " + from
	}
	return comment + "; " + sourcesBegin + from
}

// namesSource says whether a comment names a table.
func namesSource(comment, from string) bool {
	_, sources, _ := strings.Cut(comment, sourcesBegin)
	return strings.Contains(", "+sources+",", ", "+from+",")
}
