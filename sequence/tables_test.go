package sequence_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"seqproxy/sequence"
	"seqproxy/sequence/store"
)

// shown returns all columns of the place's tables as the server has them, by table.
func (p place) shown(t *testing.T) map[string]string {
	t.Helper()
	rows, err := p.db.Query("SELECT c.TABLE_NAME, CONCAT_WS(' ', c.COLUMN_NAME, c.COLUMN_TYPE, IFNULL(c.COLLATION_NAME, 'none'), IFNULL(c.COLUMN_DEFAULT, 'NULL'), c.IS_NULLABLE, c.COLUMN_KEY, t.ENGINE, t.TABLE_COMMENT) "+
		"FROM information_schema.COLUMNS AS c JOIN information_schema.TABLES AS t USING (TABLE_SCHEMA, TABLE_NAME) WHERE c.TABLE_SCHEMA = ? ORDER BY c.TABLE_NAME, c.ORDINAL_POSITION", p.schema)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	all := make(map[string]string)
	for rows.Next() {
		var table, column string
		if err := rows.Scan(&table, &column); err != nil {
			t.Fatal(err)
		}
		all[table] += column + "\n"
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// A proxy that first connects makes all tables that Schema prints.
func TestAllTablesAreMadeTogetherAsTheyArePrinted(t *testing.T) {
	byHand, made := newPlace(t).withAll(t, nil), newPlace(t)
	s := made.open(t)
	if _, err := s.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	printed, got := byHand.shown(t), made.shown(t)
	want := []string{"sequence", "sequence_holder", "sequence_limit", "sequence_member", "sequence_options", "sequence_plan", "sequence_plan_start", "sequence_proxy", "sequence_version"}
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
		t.Errorf("got tables %q, want %q", names, want)
	}
	if !maps.Equal(printed, got) {
		t.Errorf("by hand there are %q, a proxy makes %q", printed, got)
	}
	if again := byHand.withAll(t, nil).shown(t); !maps.Equal(again, printed) {
		// and once more does no harm
		t.Errorf("made again: got %q, want %q", again, printed)
	}
	mustCreate(t, byHand.open(t, forbidden), sequence.CreateOptions{Name: "photos"})
}

// Beside an existing table the names have its type, so that both compare alike.
func TestTheTablesBesideGoByTheNamesOfTheFirst(t *testing.T) {
	p := newPlace(t)
	p.exec(t, "CREATE TABLE sequence (name varchar(80) CHARACTER SET latin1 PRIMARY KEY, id BIGINT UNSIGNED NOT NULL) ENGINE=InnoDB")
	mustCreate(t, p.open(t), sequence.CreateOptions{Name: "photos", Comment: "x"})
	var n int
	err := p.db.QueryRow("SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND COLUMN_NAME = 'name' AND COLUMN_TYPE = 'varchar(80)' AND CHARACTER_SET_NAME = 'latin1'", p.schema).Scan(&n)
	if err != nil || n != 4 {
		t.Errorf("got %d such columns, %v; want 4", n, err)
	}
}

// Where missing tables may not be made, nothing is given, and the error names them and the way out.
func TestMissingTablesThatMayNotBeMadeAreToldWithTheWayOut(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 7})
	for name, change := range map[string]func(*sequence.Options){
		"create_table = false": forbidden, "no right": p.user(t, "SELECT, INSERT, UPDATE, DELETE"),
	} {
		_, err := p.open(t, change).Take(t.Context(), []byte("photos"), 1)
		if !errors.Is(err, sequence.ErrUnfit) {
			t.Errorf("%s: got %v, want ErrUnfit", name, err)
		}
		wantText(t, err, "sequence_options", "seqproxy schema", "GRANT")
	}
	if id := p.id(t, "photos"); id != 7 {
		t.Errorf("the row stands at %d", id)
	}
	p.withAll(t, nil)
	mustTake(t, p.open(t, p.user(t, "SELECT, INSERT, UPDATE, DELETE")), "photos", 1)
	for i := range store.OtherTables {
		p.exec(t, "DROP TABLE sequence"+store.OtherTables[i].Suffix)
		_, err := p.open(t, forbidden).Take(t.Context(), []byte("photos"), 1)
		wantText(t, err, "sequence"+store.OtherTables[i].Suffix, "seqproxy schema")
		p.withAll(t, nil)
	}
}

// Somebody drops the first table. A proxy makes no empty one in its place, whose numbers others
// have.
func TestAFirstTableThatIsGoneIsNotMadeAgain(t *testing.T) {
	p := newPlace(t)
	creates := func(o *sequence.Options) { o.CreateUnknown = true }
	mustTake(t, p.open(t, creates), "photos", 1)
	p.exec(t, "DROP TABLE sequence")
	late := p.open(t, creates)
	n, err := late.Take(t.Context(), []byte("photos"), 1)
	if !errors.Is(err, sequence.ErrUnfit) {
		t.Errorf("got %d, %v, want ErrUnfit", n, err)
	}
	wantText(t, err, "`sequence`: it is gone", "sequence_options", "restore it", "seqproxy schema")
	examined := p.open(t).Examine(t.Context(), nil)
	if found := examined[0].Nodes[0].Findings; len(found) != 1 || !strings.Contains(found[0].Error(), "it is gone") {
		t.Errorf("the examination finds %v", found)
	}
	p.withAll(t, nil)
	eventually(t, "it goes on", func() bool {
		_, err := late.Create(t.Context(), sequence.CreateOptions{Name: "photos", Start: 5000})
		return err == nil
	})
}

// Somebody drops a table beside the first one, as that with what keeps a dropped sequence from
// beginning again. A proxy makes no empty one in its place.
func TestATableBesideThatIsGoneIsNotMadeAgain(t *testing.T) {
	p := newPlace(t)
	s := p.open(t)
	createOn(t, s, "photos")
	first := mustTake(t, s, "photos", 50)
	if _, err := s.Drop(t.Context(), []byte("photos"), false); err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{"sequence_limit", "sequence_holder", "sequence_options"} {
		p.exec(t, "RENAME TABLE "+gone+" TO was_there")
		made, err := p.open(t).Create(t.Context(), sequence.CreateOptions{Name: "photos"})
		if !errors.Is(err, sequence.ErrUnfit) {
			t.Errorf("%s: got %+v, %v, want ErrUnfit", gone, made, err)
		}
		wantText(t, err, gone+"`: it is gone", "restore it", "seqproxy schema")
		examined := p.open(t).Examine(t.Context(), nil)
		if found := examined[0].Nodes[0].Findings; len(found) == 0 || !strings.Contains(found[0].Error(), "it is gone") {
			t.Errorf("%s: the examination finds %v", gone, found)
		}
		p.exec(t, "RENAME TABLE was_there TO "+gone)
	}
	if made := createOn(t, p.open(t), "photos"); made.First <= first+49 {
		t.Errorf("it begins again at %d", made.First)
	}
}

// A secondary table that keeps nothing through a crash, or has another purpose, is refused.
func TestATableBesideThatIsNotOursIsRefused(t *testing.T) {
	for i := range store.OtherTables {
		name := "sequence" + store.OtherTables[i].Suffix
		for make, want := range map[string]string{
			"CREATE TABLE " + name + " (x int) ENGINE=InnoDB": "lacks the columns " + strings.Join(store.OtherTables[i].Columns(), ", "),
			strings.Replace(strings.Replace(store.OtherTables[i].Statement("", "sequence", store.PlainNameType), "``.", "", 1), "ENGINE=InnoDB", "ENGINE=MyISAM", 1): "engine is MyISAM",
			"CREATE VIEW " + name + " AS SELECT 1 AS x": "it is a VIEW",
		} {
			p := newPlace(t).withAll(t, map[string]uint64{"photos": 7})
			p.exec(t, "DROP TABLE "+name)
			p.exec(t, make)
			_, err := p.open(t).Take(t.Context(), []byte("photos"), 1)
			if !errors.Is(err, sequence.ErrUnfit) {
				t.Errorf("%s: got %v, want ErrUnfit", make, err)
			}
			wantText(t, err, name, want)
			examined := p.open(t).Examine(t.Context(), nil)
			if found := examined[0].Nodes[0].Findings; len(found) == 0 || !strings.Contains(found[0].Error(), want) {
				t.Errorf("%s: the examination finds %v", make, found)
			}
		}
	}
}

// An empty table in the place of one that is lost would give its numbers again.
func TestTablesThatAProxyHasSeenAreNotMadeAgain(t *testing.T) {
	p := newPlace(t)
	s := p.open(t, steadySize(10))
	mustCreate(t, s, sequence.CreateOptions{Name: "photos"})
	mustTake(t, s, "photos", 1)
	settled(t, s, "photos")
	p.server.Exec(t, "DROP DATABASE "+p.schema)
	sequence.Inside(s).First().Pool().SetMaxIdleConns(0) // so that the next connection is a new one
	all, err := s.SequenceServers(t.Context())
	if wantText(t, err, "is gone"); len(all) != 1 || all[0].State != "away" {
		t.Errorf("the sequence servers are %+v", all)
	}
	_, err = s.Create(t.Context(), sequence.CreateOptions{Name: "photos", IfNotExists: true})
	wantText(t, err, "is gone", "Backup and restore")
	mustTake(t, s, "photos", 1) // from memory
}
