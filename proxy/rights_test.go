package proxy_test

import (
	"context"
	"database/sql"
	"slices"
	"testing"

	"seqproxy/proxy"
	"seqproxy/sequence"
)

func TestAUserTakesNumbersOfItsOwnSequencesOnly(t *testing.T) {
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) {
		o.Users[0].Admin = false
		o.Users[0].Sequences = []string{"photos", "video*", "later*"}
	}})
	for _, name := range []string{"photos", "videos", "video_likes", "albums", "vide"} {
		if _, err := e.Sequences.Create(t.Context(), sequence.CreateOptions{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "CREATE TABLE t (id BIGINT UNSIGNED)")
	for _, text := range []string{
		"SELECT NEXTVAL('photos')", "SELECT NEXTVAL(`PHOTOS`)", "SELECT NEXTVAL('videos'), NEXTVAL('VIDEO_likes')",
		"INSERT INTO t VALUES (NEXTVAL('photos')), (NEXTVAL('Videos'))",
	} {
		for _, how := range []string{"text", "prepared"} {
			if err := run(t.Context(), c, how, text); err != nil {
				t.Errorf("%s, %s: %v", text, how, err)
			}
		}
	}
	before := e.Sequences.Stats().Given
	for _, text := range []string{
		"SELECT NEXTVAL('albums')", "SELECT NEXTVAL('ALBUMS')", "SELECT NEXTVAL('vide')", "SELECT NEXTVAL('nobody')", "SELECT NEXTVAL('*')",
		"SELECT NEXTVAL('photos'), NEXTVAL('albums')", // none of the first is taken
		"INSERT INTO t VALUES (NEXTVAL('photos')), (NEXTVAL('albums'))", "SELECT NEXTVAL('albums') FROM DUAL LIMIT 1",
		"SELECT NEXTVAL('albums', 5)", "SELECT NEXT VALUE FOR albums", "SELECT LASTVAL(albums)", "SELECT SETVAL('albums', 99)", "DO NEXTVAL('albums')",
		"SELECT NEXTVAL('albums'), id FROM t", "INSERT INTO t SELECT NEXTVAL('albums') FROM t", "UPDATE t SET id = NEXTVAL('albums')",
		"SELECT SETVAL('photos', 99), SETVAL('albums', 99)",
	} {
		for _, how := range []string{"text", "prepared"} {
			checkError(t, text+", "+how, run(t.Context(), c, how, text), 1227, "Access denied", "right to use the sequence")
		}
	}
	if got := e.Sequences.Stats().Given; got != before {
		t.Errorf("%d numbers were taken by statements that were refused, want none", got-before)
	}
	for _, text := range []string{"SELECT NEXTVAL(?)", "INSERT INTO t VALUES (NEXTVAL(?))", "SELECT LASTVAL(?)", "SELECT SETVAL(?, 99)"} {
		_, err := c.ExecContext(t.Context(), text, "albums")
		checkError(t, text, err, 1227, "Access denied")
	}
	if got := value(t, c, "SELECT NEXTVAL('photos') < 99"); got != "1" {
		t.Error("a refused SETVAL has changed the sequence")
	}
	if _, rows := table(t, e.DirectConn(t, 0, e.SequenceSchema, nil), "SELECT id FROM sequence WHERE name = 'albums'"); rows[0][0] != "0" {
		t.Errorf("the counter of a sequence without users: got %s, want 0", rows[0][0])
	}
	if _, rows := table(t, c, "SHOW CREATE SEQUENCE PHOTOS"); len(rows) != 1 || rows[0][0] != "photos" {
		t.Errorf("SHOW CREATE SEQUENCE of the user's own: got %q", rows)
	}
	for _, text := range []string{"SHOW CREATE SEQUENCE albums", "SHOW CREATE SEQUENCE nobody", "ALTER SEQUENCE photos CACHE 5", "CHECK SEQUENCE photos", "FLUSH SEQUENCES photos"} {
		wantError(t, c, 1227, text, "Access denied")
	}
	// A sequence that the user may use but that does not exist is unknown, not denied.
	wantError(t, c, 4091, "SELECT NEXTVAL('video')", "video")
	wantError(t, c, 4091, "SELECT NEXTVAL('later')", "later")
	if got := names(t, c, "SHOW SEQUENCES"); !slices.Equal(got, []string{"photos", "video_likes", "videos"}) {
		t.Errorf("SHOW SEQUENCES shows %q, want the user's own", got)
	}
	if got := names(t, c, "SHOW SEQUENCES LIKE 'VIDEO\\_%'"); !slices.Equal(got, []string{"video_likes"}) {
		t.Errorf("SHOW SEQUENCES LIKE shows %q, want video_likes", got)
	}
}

// Whoever lists sequences may use few of thousands.
func TestAListLooksUpNoSequenceThatTheUserMayNotUse(t *testing.T) {
	e := newEnv(t, setup{Shards: noShards, Proxy: func(o *proxy.Options) {
		o.Users[0].Admin = false
		o.Users[0].Sequences = []string{"PHOTOS", "albums", "video*", "nobody"}
	}})
	for _, name := range []string{"photos", "albums", "videos", "a", "b", "c", "d", "e"} {
		createSequence(t, e, name)
	}
	c := e.Conn(t, "", nil)
	before := e.Sequences.Stats().Sequences
	for _, list := range []string{"SHOW SEQUENCES", "SHOW SEQUENCES LIKE '%'"} {
		if got := names(t, c, list); !slices.Equal(got, []string{"albums", "photos", "videos"}) {
			t.Errorf("%s: got %q", list, got)
		}
	}
	// Only the server can tell that PHOTOS means photos.
	if got := e.Sequences.Stats().Sequences - before; got != 1 {
		t.Errorf("%d sequences were looked up, want one", got)
	}
}

func TestAListOfSequencesMayBeEmptyOrAll(t *testing.T) {
	for _, test := range []struct {
		list []string
		code uint16
	}{{nil, 0}, {[]string{"*"}, 0}, {[]string{}, 1227}} {
		e := newEnv(t, setup{Shards: noShards, Proxy: func(o *proxy.Options) { o.Users[0].Sequences = test.list }})
		createSequence(t, e, "s")
		err := run(t.Context(), e.Conn(t, "", nil), "text", "SELECT NEXTVAL('s')")
		if test.code == 0 && err != nil {
			t.Errorf("%q: %v", test.list, err)
		} else if test.code != 0 {
			checkError(t, "with no sequences", err, test.code)
		}
	}
}

// With unknown_sequence = "create" a user makes only sequences that its list allows.
func TestAUserCreatesNoSequenceByUsingOneThatIsNotItsOwn(t *testing.T) {
	e := newEnv(t, setup{
		Shards:   noShards,
		Sequence: func(o *sequence.Options) { o.CreateUnknown = true },
		Proxy: func(o *proxy.Options) {
			o.Unknown, o.Users[0].Sequences = proxy.UnknownCreate, []string{"photos", "mi*"}
		},
	})
	c := e.Conn(t, "", nil)
	for _, name := range []string{"photos", "mine"} {
		if got := value(t, c, "SELECT NEXTVAL('"+name+"')"); got != "1" {
			t.Errorf("%s: got %s, want 1", name, got)
		}
	}
	wantError(t, c, 1227, "SELECT NEXTVAL('yours')")
	if all, err := e.Sequences.List(t.Context()); err != nil || len(all) != 2 {
		t.Errorf("got %v, %v; want two sequences", all, err)
	}
}

// run executes a text, as it is or prepared.
func run(ctx context.Context, c *sql.Conn, how, text string) error {
	if how == "text" {
		_, err := c.ExecContext(ctx, text)
		return err
	}
	stmt, err := c.PrepareContext(ctx, text)
	if err != nil {
		return err
	}
	defer stmt.Close()
	_, err = stmt.ExecContext(ctx)
	return err
}

// names returns the first column of a query's rows.
func names(t *testing.T, c *sql.Conn, query string) (all []string) {
	t.Helper()
	_, rows := table(t, c, query)
	for _, row := range rows {
		all = append(all, row[0])
	}
	return all
}
