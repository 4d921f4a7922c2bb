package statement

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"seqproxy/statement/lex"
)

// fields are the fields of st, without its memory.
func fields(st *Statement) Statement {
	said := *st
	said.levels, said.arena, said.rare, said.sequence = nil, nil, false, nil
	for _, slice := range []any{&said.Calls, &said.Items, &said.Assignments} {
		if v := reflect.ValueOf(slice).Elem(); v.Len() == 0 {
			v.SetZero()
		}
	}
	return said
}

func TestACacheSaysWhatAnalyzeSays(t *testing.T) {
	c := NewCache(64)
	pad := " -- " + strings.Repeat("x", minCached)
	texts := []string{
		"select nextval('a') as x, last_insert_id(), (((1)))",
		"SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO'",
		"insert into t values (nextval('it''s'), last_insert_id()), (?, nextval(a.b))",
		"create sequence a start with 5", "create sequence b owned by t.c comment 'x'", "drop sequence a, `b``c`", "kill 5", "use `d``e`", "begin",
		"select 1; select nextval('a')", "select 'unterminated", "",
	}
	for range 4 { // read; read and stored; found; found
		for _, text := range texts {
			for _, mode := range []lex.Mode{{}, {SQLMode: lex.SQLMode{ANSIQuotes: true}}} {
				var want, got Statement
				want.Analyze([]byte(text+pad), mode)
				c.Analyze(&got, []byte(text+pad), mode)
				if g, w := fields(&got), fields(&want); !reflect.DeepEqual(g, w) {
					t.Errorf("%q: got\n%+v, want\n%+v", text, g, w)
				}
			}
		}
	}
}

func TestACacheKeepsNothingOfItsCallers(t *testing.T) {
	c := NewCache(64)
	text := "SELECT NEXTVAL('photos') AS `a``b` -- " + strings.Repeat("x", minCached)
	var st Statement
	sql := []byte(text)
	for range 3 {
		copy(sql, text)
		c.Analyze(&st, sql, lex.Mode{})
		if name := string(st.Calls[0].Name); name != "photos" {
			t.Fatalf("got the name %q, want photos", name)
		}
		// The next command uses the same memory, and names are converted in place.
		clear(sql)
		st.Calls[0].Name = []byte("another")
		st.Items[0].Alias = nil
		st.Analyze([]byte("SELECT NEXTVAL('videos') AS `c``d`"), lex.Mode{})
	}
}

// This test fails if a new slice of Statement is not copied.
func TestACopyHasSlicesOfItsOwn(t *testing.T) {
	var from, st Statement
	each := func(v reflect.Value, f func(name string, v reflect.Value)) {
		var walk func(name string, v reflect.Value)
		walk = func(name string, v reflect.Value) {
			switch v.Kind() {
			case reflect.Struct:
				for i := range v.NumField() {
					walk(name+"."+v.Type().Field(i).Name, v.Field(i))
				}
			case reflect.Slice:
				if v.Type().Elem().Kind() != reflect.Uint8 {
					// the bytes of a name are never written
					f(name, v)
				}
			}
		}
		walk("Statement", v)
	}
	each(reflect.ValueOf(&from).Elem(), func(_ string, v reflect.Value) {
		if v.CanSet() {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
	})
	st.copy(&from)
	shared := make(map[string]uintptr)
	each(reflect.ValueOf(&from).Elem(), func(name string, v reflect.Value) { shared[name] = v.Pointer() })
	each(reflect.ValueOf(&st).Elem(), func(name string, v reflect.Value) {
		if v.Pointer() == shared[name] && v.Pointer() != 0 {
			t.Errorf("%s is shared", name)
		}
	})
}

func TestACacheForgetsWhatIsSeldomAsked(t *testing.T) {
	c := NewCache(cacheParts)
	var st Statement
	for i := range 1000 {
		sql := []byte(fmt.Sprintf("SELECT %0*d", minCached, i))
		c.Analyze(&st, sql, lex.Mode{})
		c.Analyze(&st, sql, lex.Mode{})
	}
	kept := 0
	for i := range c.parts {
		kept += c.parts[i].results.Len()
	}
	if kept != cacheParts {
		t.Errorf("%d texts are kept, want %d", kept, cacheParts)
	}
}

func TestACacheIsSharedBySessions(t *testing.T) {
	c := NewCache(32)
	var sessions sync.WaitGroup
	for range 4 {
		sessions.Go(func() {
			var st Statement
			for i := range 2000 {
				n := i % 40
				sql := []byte(fmt.Sprintf("SELECT NEXTVAL('s%02d'), '%s'", n, strings.Repeat("x", minCached)))
				c.Analyze(&st, sql, lex.Mode{})
				if want := fmt.Sprintf("s%02d", n); len(st.Calls) != 1 || string(st.Calls[0].Name) != want {
					t.Errorf("got %+v, want one call for %s", st.Calls, want)
					return
				}
				clear(sql)
			}
		})
	}
	sessions.Wait()
}

const ormSelect = "SELECT `photos`.`id`, `photos`.`album_id`, `photos`.`title`, `photos`.`created_at`, `albums`.`id` AS `album__id`, " +
	"`albums`.`name` AS `album__name` FROM `photos` LEFT OUTER JOIN `albums` ON `photos`.`album_id` = `albums`.`id` " +
	"WHERE `photos`.`album_id` = ? AND `photos`.`deleted_at` IS NULL ORDER BY `photos`.`created_at` DESC LIMIT 25"

func BenchmarkSeenBefore(b *testing.B) {
	c := NewCache(1024)
	for _, text := range []struct{ name, sql string }{
		{"OfAnORM", ormSelect},
		{"InsertNextval", benchTexts[1].sql},
	} {
		sql := []byte(text.sql)
		for _, way := range []struct {
			name    string
			analyze func(st *Statement, sql []byte, mode lex.Mode)
		}{
			{"analyzed", (*Statement).Analyze},
			{"cached", c.Analyze},
		} {
			b.Run(text.name+"/"+way.name, func(b *testing.B) {
				var st Statement
				b.ReportAllocs()
				for b.Loop() {
					way.analyze(&st, sql, lex.Mode{})
				}
			})
		}
	}
	b.Run("NeverSeen", func(b *testing.B) {
		sql := []byte(ormSelect)
		var st Statement
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			for at, n := len(sql)-8, i; at < len(sql); at, n = at+1, n>>4 {
				sql[at] = 'a' + byte(n&15)
			}
			c.Analyze(&st, sql, lex.Mode{})
		}
	})
}

// What is known of a short text may take thirty times its memory.
func TestACacheKeepsNothingMuchLargerThanItsText(t *testing.T) {
	for text, want := range map[string]int{
		"INSERT INTO photos (id, title) VALUES (NEXTVAL('photos'), ?), (NEXTVAL('photos'), ?), (NEXTVAL('photos'), ?)":              1,
		"SELECT a.id, a.title, b.name FROM a JOIN b USING (id) WHERE a.id = 1; SELECT FOUND_ROWS(); SELECT LAST_INSERT_ID()":        1,
		"INSERT INTO photos (id, title, album) VALUES " + strings.Repeat("(NEXTVAL('photos'), 'a photo of the sea', 12345), ", 150): 1,
		"SELECT " + strings.Repeat("NEXTVAL('photos'), ", 9) + "NEXTVAL('photos')":                                                  1,
		"SET @x = 1, " + strings.Repeat("@, ", 2000):                                                                                0,
		strings.Repeat("DO 1;", 1500):                     0,
		"SELECT 1" + strings.Repeat(", nextval(a)", 600):  0,
		"DROP SEQUENCE a" + strings.Repeat(", a", 2000):   0,
		"SELECT 1" + strings.Repeat(" ", 100) + "; DO 1;": 1,
	} {
		c := NewCache(64)
		var st Statement
		for range 3 {
			c.Analyze(&st, []byte(text), lex.Mode{})
		}
		got := 0
		for i := range c.parts {
			got += c.parts[i].results.Len()
		}
		if got != want {
			t.Errorf("%.40s... of %d bytes: %d kept, want %d", text, len(text), got, want)
		}
	}
}
