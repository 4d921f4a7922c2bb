package clients_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-sql-driver/mysql"
)

// runGoDriver makes the transcript of go-sql-driver, in this process.
func runGoDriver(ctx context.Context, t *testing.T, p *place, to target) ([]byte, error) {
	s := &goSession{ctx: ctx}
	dial := func(password string) (*sql.DB, error) {
		c := config(net.JoinHostPort(to.host, to.port), to.schema)
		c.User, c.Passwd, c.MultiStatements, c.MaxAllowedPacket = to.user, password, true, 64<<20
		c.Collation = "utf8mb4_general_ci"
		switch to.login {
		case "tls":
			pem, err := os.ReadFile(p.ca)
			if err != nil {
				return nil, err
			}
			c.TLS = &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "127.0.0.1"}
			c.TLS.RootCAs.AppendCertsFromPEM(pem)
		case "compress":
			if err := c.Apply(mysql.EnableCompression(true)); err != nil {
				return nil, err
			}
		}
		mysql.RegisterLocalFile(to.infile)
		connector, err := mysql.NewConnector(c)
		if err != nil {
			return nil, err
		}
		return sql.OpenDB(connector), nil
	}
	db, err := dial(password)
	if err != nil {
		return nil, err
	}
	defer db.Close() //nolint:errcheck // every statement was answered
	if s.c, err = db.Conn(ctx); err != nil {
		return nil, err
	}
	defer s.c.Close() //nolint:errcheck // every statement was answered

	s.step("client", "go-sql-driver "+moduleVersion("github.com/go-sql-driver/mysql"))
	s.step("connect", s.rows("SELECT VERSION()"))
	s.step("session", s.rows(sessionQuery))
	s.step("types", s.columns("SELECT * FROM types ORDER BY id"), s.rows("SELECT * FROM types ORDER BY id"))
	s.step("text", s.exec("UPDATE types SET i = i + 1 WHERE id = 1"), s.rows("SELECT i FROM types"), s.rows("SELECT 'it''s', 'größe 🌊'"))
	const question = "SELECT ? + 1, ?, HEX(?), ? IS NULL"
	s.step("prepared", s.rows(question, 41, "größe 🌊", []byte("\x00\xff'"), nil), s.rows(question, -1, "", "", 0),
		s.prepared("SELECT * FROM types WHERE id < ? ORDER BY id", 9))
	s.step("insert id", s.exec("INSERT INTO photos (title) VALUES ('sea')")[0],
		s.exec("INSERT INTO photos (title) VALUES (?)", "hill")[0],
		s.exec("INSERT INTO photos (title) VALUES ('a'), ('b'), ('c')")[0])

	const count = "SELECT COUNT(*) FROM photos"
	counts := []any{s.one(count)}
	for _, title := range []string{"gone", "kept"} {
		tx, err := s.c.BeginTx(ctx, nil)
		s.keep(err)
		if err != nil {
			break
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO photos (title) VALUES (?)", title)
		s.keep(err)
		if title == "kept" {
			s.keep(tx.Commit())
		} else {
			s.keep(tx.Rollback())
		}
		counts = append(counts, s.one(count))
	}
	s.step("transaction", counts...)

	big := []byte(strings.Repeat(pattern, to.big/len(pattern)+1)[:to.big])
	s.exec("INSERT INTO big VALUES (1, ?)", big)
	there := s.rows("SELECT LENGTH(data), SHA2(data, 256) FROM big")
	var back []byte
	s.keep(s.c.QueryRowContext(ctx, "SELECT data FROM big").Scan(&back))
	sum := sha256.Sum256(back)
	if len(there) == 1 {
		s.step("big", there[0][0], there[0][1], len(back), hex.EncodeToString(sum[:]))
	}

	var refusals []any
	for _, bad := range []string{"INSERT INTO photos (title) VALUES ('sea')", "SELECT * FROM nothing", "SELEKT 1"} {
		_, err := s.c.ExecContext(ctx, bad)
		refusals = append(refusals, refused(err))
	}
	s.step("error", refusals...)
	s.step("after", s.rows("SELECT 1")[0])
	s.step("results", s.results("CALL two(7, @twice)"), s.rows("SELECT @twice"), s.results("SELECT 1; DO 1; SELECT 'two'"))
	loaded := s.exec("LOAD DATA LOCAL INFILE '" + to.infile + "' INTO TABLE words")
	_, missing := s.c.ExecContext(ctx, "LOAD DATA LOCAL INFILE '/none/file' INTO TABLE words")
	s.step("infile", loaded, s.rows("SELECT COUNT(*), SUM(n), MIN(word) FROM words"), missing != nil)

	if to.sequence != "" {
		const last, row = "SELECT LAST_INSERT_ID()", "SELECT MAX(id) FROM keyed"
		id := s.exec("INSERT INTO keyed VALUES (NEXTVAL('" + to.sequence + "'), '" + to.login + "')")[0]
		s.step("nextval", id, s.one(last), s.one(row))
		id = s.exec("INSERT INTO keyed VALUES (NEXTVAL('"+to.sequence+"'), ?)", to.login)[0]
		s.step("nextval prepared", id, s.one(last), s.one(row))
	}
	wrong, err := dial("wrong")
	if err != nil {
		return nil, err
	}
	defer wrong.Close() //nolint:errcheck // was never connected
	s.step("refused", refused(wrong.PingContext(ctx))...)
	return s.out.Bytes(), errors.Join(s.errs...)
}

// goSession is a connection with its transcript.
type goSession struct {
	ctx  context.Context
	c    *sql.Conn
	out  bytes.Buffer
	errs []error
}

func (s *goSession) keep(err error) {
	if err != nil {
		s.errs = append(s.errs, err)
	}
}

func (s *goSession) step(name string, values ...any) {
	line, err := json.Marshal(map[string]any{"step": name, "value": plainList(values)})
	s.keep(err)
	s.out.Write(append(line, '\n'))
}

// plainList makes all scalars strings.
func plainList[T any](values []T) []any {
	list := []any{}
	for _, v := range values {
		switch v := any(v).(type) {
		case nil:
			list = append(list, nil)
		case []any:
			list = append(list, plainList(v))
		case [][]any:
			list = append(list, plainList(v))
		case []byte:
			if utf8.Valid(v) {
				list = append(list, string(v))
			} else {
				list = append(list, hex.EncodeToString(v))
			}
		default:
			list = append(list, fmt.Sprint(v))
		}
	}
	return list
}

// exec runs a statement and returns insert id and affected rows. With arguments it is prepared.
func (s *goSession) exec(query string, args ...any) []any {
	r, err := s.c.ExecContext(s.ctx, query, args...)
	if err != nil {
		s.keep(fmt.Errorf("%.100s: %w", query, err))
		return []any{nil, nil}
	}
	id, err := r.LastInsertId()
	s.keep(err)
	affected, err := r.RowsAffected()
	s.keep(err)
	return []any{id, affected}
}

func (s *goSession) rows(query string, args ...any) [][]any {
	r, err := s.c.QueryContext(s.ctx, query, args...)
	if err != nil {
		s.keep(fmt.Errorf("%.100s: %w", query, err))
		return nil
	}
	defer r.Close() //nolint:errcheck // Err tells
	return s.read(r)
}

// prepared executes one statement twice.
func (s *goSession) prepared(query string, args ...any) []any {
	p, err := s.c.PrepareContext(s.ctx, query)
	if err != nil {
		s.keep(err)
		return nil
	}
	defer p.Close() //nolint:errcheck // has no answer
	var both []any
	for range 2 {
		r, err := p.QueryContext(s.ctx, args...)
		if err != nil {
			s.keep(err)
			return nil
		}
		both = append(both, s.read(r))
		s.keep(r.Close())
	}
	return both
}

func (s *goSession) read(r *sql.Rows) [][]any {
	columns, err := r.Columns()
	s.keep(err)
	var all [][]any
	for r.Next() {
		row, at := make([]any, len(columns)), make([]any, len(columns))
		for i := range row {
			at[i] = &row[i]
		}
		s.keep(r.Scan(at...))
		all = append(all, row)
	}
	s.keep(r.Err())
	return all
}

func (s *goSession) one(query string) any {
	if rows := s.rows(query); len(rows) == 1 {
		return rows[0][0]
	}
	return nil
}

func (s *goSession) results(query string) []any {
	r, err := s.c.QueryContext(s.ctx, query)
	if err != nil {
		s.keep(err)
		return nil
	}
	defer r.Close() //nolint:errcheck // Err tells
	all := []any{s.read(r)}
	for r.NextResultSet() {
		all = append(all, s.read(r))
	}
	return all
}

func (s *goSession) columns(query string) []any {
	r, err := s.c.QueryContext(s.ctx, query)
	if err != nil {
		s.keep(err)
		return nil
	}
	defer r.Close() //nolint:errcheck // Err tells
	types, err := r.ColumnTypes()
	s.keep(err)
	var all []any
	for _, c := range types {
		nullable, _ := c.Nullable()
		precision, scale, _ := c.DecimalSize()
		all = append(all, []any{c.Name(), c.DatabaseTypeName(), nullable, precision, scale})
	}
	return all
}

// refused returns the parts of an error: code, state and text.
func refused(err error) []any {
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		return []any{fmt.Sprint(err), nil, nil}
	}
	return []any{e.Number, string(e.SQLState[:]), e.Message}
}

// moduleVersion returns the version of a module in go.mod.
func moduleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, m := range info.Deps {
			if m.Path == path {
				return m.Version
			}
		}
	}
	return "of unknown version"
}
