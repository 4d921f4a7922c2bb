package ticket

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
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

// Import names a ticket table, on any server, whose counter is to become a sequence.
type Import struct {
	Database, Table string
	// From names the table and its server in the comment of the sequence. The same table must have
	// the same name in every import.
	From     string
	Sequence string
	DryRun   bool   // change nothing
	Next     uint64 // with DryRun: the table's next number, as the caller has read it
}

// Imported says what an import did, or would do.
type Imported struct {
	Created bool   // the sequence was made
	Raised  bool   // the sequence was there; it was raised, or the table's counter was
	Next    uint64 // the next number of the sequence; 0 if none is left
	Last    uint64 // the sequence ends there, and the table's counter goes on above
	// Lossy says why a crash of the table's server could take its counter back; "" if it cannot.
	Lossy string
}

// Destination is the sequence that an import goes to.
type Destination interface {
	// Look says what it is, which number comes next, 0 if none is left, and where it ends.
	// [define.ErrUnknown]: it is not there.
	Look(ctx context.Context) (def define.Definition, next, limit uint64, err error)
	// LimitOfNew is the highest number that it could have. It refuses what several servers cannot
	// have.
	LimitOfNew(ctx context.Context, def *define.Definition) (uint64, error)
	// Create makes it, and returns its first number.
	Create(ctx context.Context, def *define.Definition) (first uint64, err error)
	// Raise has it go on above n.
	Raise(ctx context.Context, n uint64) error
	// SetComment changes its comment.
	SetComment(ctx context.Context, comment string) error
}

// ImportTiming are the clocks of an import.
type ImportTiming struct {
	Silence time.Duration // after which the table's server ends a connection
	Unlock  time.Duration // for UNLOCK TABLES, even after the caller's time
	Again   time.Duration // the first pause after somebody else had locked the table
}

// CarryOut has a sequence give the numbers behind those that a ticket table gave, and raises
// the table's own counter above the end of the sequence. So applications that go on taking numbers
// of the table get no number that the sequence gives. conn is a connection to the table's server,
// whose session settings are changed.
//
// The table is locked meanwhile. One number is taken of it, which is nobody's. Then:
//   - A new sequence: a row is written far ahead, above which the table goes on. Then the sequence
//     is made, from the number that was taken up to that row. It keeps the step of the table's
//     server, so it never gives a number of another table that takes turns with this one.
//   - A sequence that is there: it is raised above the number that was taken. Then a row is written
//     above its end. At last its comment names the table.
//
// Whatever ends that between two steps, the table gives none of the sequence's numbers that it does
// not give without that; a later call begins again. If the table's counter is above the end of the
// sequence, and its comment does not name the table, nobody can tell which of its numbers the table
// gave: that is an error.
func (o Import) CarryOut(ctx context.Context, conn *sql.Conn, into Destination, timing ImportTiming) (done Imported, err error) {
	nameless := func() string { return "" }
	table := newTable(o.Database, o.Table, nameless, timing.Unlock)
	lossy, err := setUpSource(ctx, conn, timing.Silence)
	if err != nil {
		return done, err
	}
	layout, err := table.ReadLayout(ctx, conn)
	if err != nil {
		return done, err
	}
	if !layout.Transactional() {
		lossy = "its engine is " + layout.Engine
	}
	m := importing{Import: o, into: into, again: timing.Again, max: layout.Max}
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

// importing is one import under way.
type importing struct {
	Import
	into  Destination
	again time.Duration
	max   uint64 // of the table's column
	step  uint64 // the distance between the table's numbers
	first uint64 // a number that was taken of the table
}

// importStep is what there is to do once a number was taken.
type importStep struct {
	create bool              // the sequence is not there
	def    define.Definition // of the sequence
	ahead  uint64            // the number to write into the table; 0: nothing is to do
}

// decide looks at the sequence. It changes nothing, and refuses what cannot be done safely.
func (m *importing) decide(ctx context.Context) (importStep, Imported, error) {
	none := importStep{}
	def, next, limit, err := m.into.Look(ctx)
	if errors.Is(err, define.ErrUnknown) {
		return m.decideNew(ctx)
	}
	if err != nil {
		return none, Imported{}, err
	}
	there := Imported{Next: next, Last: limit}
	if err := def.Importable(); err != nil {
		return none, there, err
	}
	switch {
	case m.first > limit && namesSource(def.Comment, m.From):
		return none, there, nil
	case m.first > limit:
		return none, there, fmt.Errorf("the table's counter is at %d, above %d, where the sequence ends, and the sequence's comment names no import that put it there: "+
			"the sequence could give again what the table gave. -table %s=NAME makes another sequence; or DROP SEQUENCE %s, and import again all tables that it was made from",
			m.first, limit, m.Table, define.Quote(def.Name))
	case m.max-min(m.max, limit) < importRoom*m.step:
		return none, there, fmt.Errorf("the sequence ends at %d, and the table's column at %d, with no room above the sequence: "+
			"ALTER SEQUENCE %s MAXVALUE n leaves room, -table %s=NAME makes another sequence", limit, m.max, define.Quote(def.Name), m.Table)
	}
	there.Raised = true
	if after, ok := (segment.Rule{Step: def.Increment, Anchor: def.Start}).Next(m.first, limit); !ok {
		there.Next = 0
	} else if there.Next != 0 {
		there.Next = max(there.Next, after)
	}
	return importStep{def: def, ahead: m.first + ((limit-m.first)/m.step+1)*m.step}, there, nil
}

// decideNew is decide for a sequence that has to be made.
func (m *importing) decideNew(ctx context.Context) (importStep, Imported, error) {
	def := define.Definition{Name: m.Sequence, Increment: m.step, Comment: withSource("", m.From)}
	limit, err := m.into.LimitOfNew(ctx, &def)
	if err != nil {
		return importStep{}, Imported{}, err
	}
	distance := min(importDistance, (m.max-min(m.max, m.first))/2, limit-min(limit, m.first)) / m.step * m.step
	if distance < importRoom*m.step {
		return importStep{}, Imported{}, m.noRoom()
	}
	ahead := m.first + distance
	def.Start, def.Max = m.first+m.step, ahead-m.step
	return importStep{create: true, def: def, ahead: ahead}, Imported{Created: true, Next: def.Start, Last: def.Max}, nil
}

func (m *importing) noRoom() error {
	return fmt.Errorf("the table's counter is at %d of %d: too few numbers are left for a sequence: MODIFY its column to BIGINT UNSIGNED", m.first, m.max)
}

// carryOut locks the table and makes the import.
func (m *importing) carryOut(ctx context.Context, table *Table, conn *sql.Conn, layout *Layout) (done Imported, err error) {
	waiting, stop := await.Half(ctx) // the rest of the time is for what comes next
	defer stop()
	l, err := table.Lock(waiting, conn, layout)
	for wait := m.again; link.IsConflict(err) && await.Pause(waiting, await.Jitter(wait)); wait = min(2*wait, time.Second) {
		l, err = table.Lock(waiting, conn, layout)
	}
	if err != nil {
		return done, fmt.Errorf("lock %s: %w", table.Quoted, err)
	}
	defer func() { err = errors.Join(err, l.Unlock(ctx)) }()
	m.step = l.Step
	if m.first, err = l.nextUnnamed(ctx); errors.Is(err, define.ErrExhausted) {
		m.first = m.max
		return done, m.noRoom()
	} else if err != nil {
		return done, err
	}
	do, done, err := m.decide(ctx)
	if err != nil || do.ahead == 0 {
		return done, errors.Join(err, l.forget(ctx, m.first))
	}
	if !do.create {
		if err := m.into.Raise(ctx, m.first); err != nil {
			return done, fmt.Errorf("raise the sequence above what the table gave: %w", err)
		}
	}
	if _, err := l.moveTo(ctx, do.ahead); err != nil {
		return done, fmt.Errorf("raise the counter of %s: %w", table.Quoted, err)
	}
	if err := l.forget(ctx, m.first); err != nil {
		return done, err
	}
	if !do.create {
		return done, m.name(ctx, do.def.Comment)
	}
	first, err := m.into.Create(ctx, &do.def)
	if err != nil {
		return done, fmt.Errorf("the table's counter was raised above %d, but the sequence could not be made: %w. Nobody gets the numbers between. "+
			"Another import begins above them; CREATE SEQUENCE %s START WITH %d INCREMENT BY %d MAXVALUE %d uses them",
			do.ahead, err, define.Quote(m.Sequence), do.def.Start, do.def.Increment, do.def.Max)
	}
	done.Next = first
	return done, nil
}

// name writes into the sequence's comment that the table's counter is above its end.
func (m *importing) name(ctx context.Context, comment string) error {
	if namesSource(comment, m.From) {
		return nil
	}
	comment = withSource(comment, m.From)
	if err := m.into.SetComment(ctx, comment); err != nil {
		return fmt.Errorf("the table's counter is above the end of the sequence now, but the sequence's comment does not say so, and another import will need that: %w", err)
	}
	return nil
}
