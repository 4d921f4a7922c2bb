package clients_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
)

// The models of the object-relational mappers: albums, their pictures, and the pictures' tags.
type (
	album struct {
		ID       uint64
		Name     string `gorm:"size:50;uniqueIndex"`
		Pictures []picture
	}
	picture struct {
		ID      uint64
		Title   string `gorm:"size:50"`
		AlbumID *uint64
		Tags    []tag `gorm:"many2many:pictures_tags"`
	}
	tag struct {
		ID   uint64
		Name string `gorm:"size:50"`
	}
)

// runGORM makes the transcript of GORM, in this process. go-sql-driver prepares each statement with
// arguments.
func runGORM(ctx context.Context, t *testing.T, _ *place, to target, phases ...string) ([]byte, error) {
	c := config(net.JoinHostPort(to.host, to.port), to.schema)
	c.ParseTime, c.Collation = true, "utf8mb4_general_ci"
	db, err := gorm.Open(mysql.New(mysql.Config{DSNConfig: c, DSN: c.FormatDSN()}),
		&gorm.Config{Logger: logger.Default.LogMode(logger.Silent)})
	if err != nil {
		return nil, err
	}
	pool, err := db.DB()
	if err != nil {
		return nil, err
	}
	defer pool.Close() //nolint:errcheck // every statement was answered
	g := &gormSession{goSession: goSession{ctx: ctx}, db: db.WithContext(ctx)}
	if g.c, err = pool.Conn(ctx); err != nil {
		return nil, err
	}
	defer g.c.Close() //nolint:errcheck // every statement was answered
	if slices.Contains(phases, "migrate") {
		g.keep(db.AutoMigrate(&album{}, &picture{}, &tag{}))
		g.step("client", "GORM "+moduleVersion("gorm.io/gorm"))
	}
	if slices.Contains(phases, "use") {
		g.use()
	}
	return g.out.Bytes(), errors.Join(g.errs...)
}

type gormSession struct {
	goSession
	db *gorm.DB
}

// record keeps the rows as GORM sees them, and as they are.
func (g *gormSession) record(name string, objects []any, queries ...string) {
	var seen, rows [][]any
	for _, o := range objects {
		switch o := o.(type) {
		case album:
			seen = append(seen, []any{o.ID, o.Name})
		case tag:
			seen = append(seen, []any{o.ID, o.Name})
		case picture:
			seen = append(seen, []any{o.ID, o.Title, *o.AlbumID})
		case []any:
			seen = append(seen, o)
		}
	}
	for _, q := range queries {
		rows = append(rows, g.rows(q)...)
	}
	g.step(name, seen, rows)
}

func (g *gormSession) use() {
	albums := func(names ...string) string {
		return "SELECT id, name FROM albums WHERE name IN ('" + strings.Join(names, "', '") + "') ORDER BY id"
	}
	pictures := func(where string) string {
		return "SELECT id, title, album_id FROM pictures WHERE " + where + " ORDER BY id"
	}
	one := album{Name: "one"}
	g.keep(g.db.Create(&one).Error)
	g.record("one", []any{one}, albums("one"))
	several := []album{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	g.keep(g.db.Create(&several).Error)
	g.record("several", []any{several[0], several[1], several[2]}, albums("a", "b", "c"))

	// Related rows are stored with the first, each kind in one statement.
	tags := []tag{{Name: "blue"}, {Name: "green"}}
	g.keep(g.db.Create(&tags).Error)
	holiday := album{Name: "holiday", Pictures: []picture{{Title: "beach", Tags: tags}, {Title: "hill", Tags: tags[1:]}}}
	g.keep(g.db.Create(&holiday).Error)
	beach, hill := holiday.Pictures[0], holiday.Pictures[1]
	g.record("relation", []any{holiday, beach, hill}, albums("holiday"), pictures("title IN ('beach', 'hill')"))
	pair := func(p picture, t tag) []any { return []any{p.ID, t.ID} }
	g.record("many to many", []any{tags[0], tags[1], pair(beach, tags[0]), pair(beach, tags[1]), pair(hill, tags[1])},
		"SELECT id, name FROM tags ORDER BY id", "SELECT picture_id, tag_id FROM pictures_tags ORDER BY picture_id, tag_id")

	many := make([]picture, 250)
	for i := range many {
		many[i] = picture{Title: fmt.Sprint("p", i), AlbumID: &one.ID}
	}
	g.keep(g.db.CreateInBatches(&many, 100).Error)
	var all []any
	for _, p := range many {
		all = append(all, p)
	}
	g.record("batches", all, pictures("title LIKE 'p%'"))

	given, behind := album{ID: 500000, Name: "given"}, album{Name: "behind it"}
	g.keep(g.db.Create(&given).Error)
	g.keep(g.db.Create(&behind).Error)
	g.record("explicit", []any{given, behind}, albums("given", "behind it"))

	undo := errors.New("undo")
	if err := g.db.Transaction(func(tx *gorm.DB) error {
		return errors.Join(tx.Create(&album{Name: "undone"}).Error, undo)
	}); !errors.Is(err, undo) {
		g.keep(err)
	}
	after := album{Name: "after"}
	g.keep(g.db.Create(&after).Error)
	g.record("undone", []any{after}, albums("undone", "after"))

	var found, again album
	g.keep(g.db.FirstOrCreate(&found, album{Name: "found"}).Error)
	g.keep(g.db.FirstOrCreate(&again, album{Name: "found"}).Error)
	g.record("found or made", []any{found}, albums("found"))
	g.record("found again", []any{again}, albums("found"))

	// The keys that GORM assumes for these are wrong on a direct connection, too.
	g.keep(g.db.Clauses(clause.OnConflict{DoNothing: true}).Create(&[]album{{Name: "found"}, {Name: "new"}}).Error)
	g.keep(g.db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&album{Name: "new"}).Error)
	var both []album
	g.keep(g.db.Where("name IN ?", []string{"found", "new"}).Order("id").Find(&both).Error)
	if len(both) == 2 {
		g.record("duplicates ignored", []any{both[0], both[1]}, albums("found", "new"))
	}
}
