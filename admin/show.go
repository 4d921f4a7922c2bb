package admin

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence"
	"seqproxy/sequence/kind"
	"seqproxy/statement"
	"seqproxy/statement/ddl"
)

const (
	charsetUTF8MB4 = 45 // utf8mb4_general_ci
	charsetBinary  = 63

	// nameLength is the length of the table's name column, in characters.
	nameLength = 50
	// numberLength is the length of a BIGINT UNSIGNED.
	numberLength = 20
)

// text is a text column as in MariaDB's SHOW and CHECK.
func text(name string, chars uint32, kind uint8, flags uint16) protocol.Column {
	return protocol.Column{Name: name, Charset: charsetUTF8MB4, Length: 4 * chars, Type: kind, Flags: flags, Decimals: 39}
}

func number(name string, flags uint16) protocol.Column {
	return protocol.Column{
		Name: name, Charset: charsetBinary, Length: numberLength, Type: mysql.MYSQL_TYPE_LONGLONG,
		Flags: flags | mysql.UNSIGNED_FLAG | mysql.BINARY_FLAG,
	}
}

// fraction is a DECIMAL column. Its values are texts in both protocols.
func fraction(name string, decimals uint8, flags uint16) protocol.Column {
	return protocol.Column{
		Name: name, Charset: charsetBinary, Length: numberLength + 2, Type: mysql.MYSQL_TYPE_NEWDECIMAL, Decimals: decimals,
		Flags: flags | mysql.BINARY_FLAG,
	}
}

var showColumns = []protocol.Column{
	text("name", nameLength, mysql.MYSQL_TYPE_VAR_STRING, mysql.NOT_NULL_FLAG),
	number("next", 0),
	number("cached", mysql.NOT_NULL_FLAG),
	fraction("seconds_left", 1, 0),
	fraction("rate", 1, mysql.NOT_NULL_FLAG),
	number("cache", mysql.NOT_NULL_FLAG),
	fraction("last_reserve", 1, 0),
	fraction("order_skew", 1, 0),
	fraction("used_percent", 2, mysql.NOT_NULL_FLAG),
	text("runway", 64, mysql.MYSQL_TYPE_VAR_STRING, 0),
	text("ordered", 3, mysql.MYSQL_TYPE_VAR_STRING, mysql.NOT_NULL_FLAG),
	text("kind", kindLength, mysql.MYSQL_TYPE_VAR_STRING, 0),
	text("warning", 1024, mysql.MYSQL_TYPE_VAR_STRING, 0),
}

// show lists the sequences that the caller may use. See docs/statements.md for the columns.
func (s *Sequences) show(ctx context.Context, ddl *ddl.Sequence, by proxy.Caller) (*protocol.Table, error) {
	all, away := s.caches.List(ctx)
	if away != nil && len(all) == 0 {
		return nil, away
	}
	t := &protocol.Table{Columns: showColumns}
	asked := ctx
	if away != nil {
		why := away
		if text, hidden := sequence.Public(away); hidden && !by.Monitor {
			why = errors.New(text)
		}
		t.Warning = fromMemory("sequences", why)
		var stop context.CancelFunc
		asked, stop = context.WithTimeout(ctx, rightsPatience)
		defer stop()
	}
	var warnings map[string]any
	var own map[string]bool
	var err error
	if by.Monitor { // nobody else can act on what the shards answer
		if warnings, err = numbered(asked, by); err != nil && t.Warning == nil {
			t.Warning = warning(mysql.ER_UNKNOWN_ERROR, fmt.Sprintf("whether bound columns have AUTO_INCREMENT is not known of all shards: %v", err))
		}
	} else if own, err = usable(asked, by, all); err != nil && (away == nil || ctx.Err() != nil) {
		return nil, err
	}
	for _, i := range all {
		if ddl.HasPattern && !statement.Like(string(ddl.Pattern), i.Name) || !by.Monitor && !own[i.Name] {
			continue
		}
		var next any
		if i.Next != 0 {
			next = i.Next
		}
		t.Rows = append(t.Rows, []any{
			i.Name, next, i.Cached, seconds(i.CachedFor), decimal(i.Rate, 1), i.Cache, since(i.Reserved), seconds(i.Skew), decimal(i.Used, 2), end(i.ToEnd), yes(i.Order), kindShown(i.Kind), warnings[strings.ToLower(i.Name)],
		})
	}
	return t, nil
}

// rightsPatience bounds how long a list waits for a sequence server to report what the caller may
// see. Only the server knows whether two spellings mean the same name.
const rightsPatience = time.Second

// shardPatience bounds how long a list looks at the shards.
const shardPatience = 2 * time.Second

// numbered returns a warning for each sequence whose column has AUTO_INCREMENT on several shards.
func numbered(ctx context.Context, by proxy.Caller) (map[string]any, error) {
	ctx, stop := context.WithTimeout(ctx, shardPatience)
	defer stop()
	all, err := by.Numbered(ctx)
	warnings := make(map[string]any)
	for i := range all {
		n := &all[i]
		name := strings.ToLower(n.Binding.Sequence) // the configuration's spelling may differ
		text := fmt.Sprintf("%s has AUTO_INCREMENT on several shards, which give the same keys; on shard %s: %s", n.Name(), n.Shard, n.Remedy)
		if i > 0 && all[i-1].Binding == n.Binding {
			text = fmt.Sprintf("%s; on shard %s: %s", warnings[name], n.Shard, n.Remedy)
		} else if before := warnings[name]; before != nil {
			text = fmt.Sprintf("%s; %s", before, text)
		}
		warnings[name] = text
	}
	return warnings, err
}

// fromMemory is the warning of a list that could ask no sequence server.
func fromMemory(what string, err error) *protocol.ServerError {
	return warning(mysql.ER_UNKNOWN_ERROR, fmt.Sprintf("only the %s known here are listed: %v", what, err))
}

// usable returns which sequences of a list a caller may use.
func usable(ctx context.Context, by proxy.Caller, all []sequence.Info) (map[string]bool, error) {
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return by.Usable(ctx, names)
}

// sees reports whether a caller may see a sequence.
func sees(ctx context.Context, by proxy.Caller, name []byte) (bool, error) {
	if by.Monitor {
		return true, nil
	}
	return by.MayUse(ctx, name)
}

func decimal(x float64, decimals int) string { return strconv.FormatFloat(x, 'f', decimals, 64) }

// seconds returns NULL for sequence.Never.
func seconds(d time.Duration) any {
	if d == sequence.Never {
		return nil
	}
	return decimal(d.Seconds(), 1)
}

// kindShown returns NULL for a plain sequence.
func kindShown(k kind.Kind) any {
	if k.IsPlain() {
		return nil
	}
	return k.String()
}

func yes(is bool) string {
	if is {
		return "YES"
	}
	return "NO"
}

// end says in words when a sequence runs out. It is NULL if that is far away.
func end(d time.Duration) any {
	const day = 24 * time.Hour
	switch {
	case d == sequence.Never:
		return nil
	case d <= 0:
		return "now"
	case d >= 365*2*day:
		return fmt.Sprintf("in %d years at today's rate", d/(365*day))
	case d >= 2*day:
		return fmt.Sprintf("in %d days at today's rate", d/day)
	case d >= 2*time.Hour:
		return fmt.Sprintf("in %d hours at today's rate", d/time.Hour)
	}
	return fmt.Sprintf("in %d minutes at today's rate", (d+time.Minute-1)/time.Minute)
}

// createColumns are the columns of MariaDB's SHOW CREATE SEQUENCE.
var createColumns = []protocol.Column{
	text("Table", 64, mysql.MYSQL_TYPE_VAR_STRING, mysql.NOT_NULL_FLAG),
	text("Create Table", 1024, mysql.MYSQL_TYPE_VAR_STRING, mysql.NOT_NULL_FLAG),
}

// seen returns a sequence, if the caller may see it.
func (s *Sequences) seen(ctx context.Context, name []byte, by proxy.Caller) (sequence.Definition, error) {
	if may, err := sees(ctx, by, name); err != nil {
		return sequence.Definition{}, err
	} else if !may {
		return sequence.Definition{}, denied(name)
	}
	d, _, err := s.sequences.Describe(ctx, name)
	return d, err
}

func (s *Sequences) showCreate(ctx context.Context, name []byte, by proxy.Caller) (*protocol.Table, error) {
	d, err := s.seen(ctx, name, by)
	if err != nil {
		return nil, err
	}
	return &protocol.Table{Columns: createColumns, Rows: [][]any{{d.Name, createText(&d, by.NoBackslashEscapes)}}}, nil
}

// createText returns the statement that makes a sequence like d, in MariaDB's order and letter
// case. Options that MariaDB lacks stand before the table's options.
func createText(d *sequence.Definition, noEscapes bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE SEQUENCE %s start with %d minvalue %d", quoteName(d.Name), d.Start, d.Min)
	if d.Max == 0 {
		b.WriteString(" nomaxvalue")
	} else {
		fmt.Fprintf(&b, " maxvalue %d", d.Max)
	}
	fmt.Fprintf(&b, " increment by %d", d.Increment)
	switch d.Cache {
	case 0: // adaptive
		if d.Kind.Resets() {
			b.WriteString(" cache default")
		}
	case 1:
		b.WriteString(" nocache")
	default:
		fmt.Fprintf(&b, " cache %d", d.Cache)
	}
	if d.Cycle {
		b.WriteString(" cycle")
	} else {
		b.WriteString(" nocycle")
	}
	if d.Order {
		b.WriteString(" order")
	}
	switch {
	case !d.Kind.IsPlain():
		b.WriteString(" " + clause(d.Kind)) // with JSON_SAFE
	case d.JSONSafe:
		b.WriteString(" json_safe")
	}
	if d.Cover > 0 {
		fmt.Fprintf(&b, " outage_cover %d", d.Cover)
	}
	if c := d.OwnedBy; !c.IsZero() {
		b.WriteString(" owned by " + c.Quoted())
	}
	b.WriteString(" ENGINE=InnoDB")
	if d.Comment != "" {
		b.WriteString(" COMMENT=" + quoteText(d.Comment, noEscapes))
	}
	return b.String()
}

// clause returns the clause of a kind in MariaDB's letters, except in quotes.
func clause(k kind.Kind) string {
	parts := strings.Split(k.String(), "'")
	for i := 0; i < len(parts); i += 2 {
		parts[i] = strings.ToLower(parts[i])
	}
	return strings.Join(parts, "'")
}

func quoteName(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

func quoteText(s string, noEscapes bool) string {
	if noEscapes {
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	}
	return "'" + strings.NewReplacer("'", "''", `\`, `\\`, "\n", `\n`, "\r", `\r`, "\x00", `\0`).Replace(s) + "'"
}
