package clients_test

import (
	"context"
	"path/filepath"
	"testing"
)

// orms are object-relational mappers. Their programs have two phases: migrate makes the tables, and
// use fills them.
var orms = []keyProgram{
	{name: "GORM", run: runGORM},
	ormScript("Django", python, "django/app.py"),
	ormScript("Sequelize", "node", "node/sequelize.mjs"),
	ormScript("ActiveRecord", "ruby", "activerecord.rb"),
}

// ormScript is a script of testdata.
func ormScript(name, interpreter, file string) keyProgram {
	return keyProgram{
		name:    name,
		missing: func() string { return missing(name, interpreter, file) },
		run: func(ctx context.Context, t *testing.T, p *place, to target, phases ...string) ([]byte, error) {
			command := []string{interpreter, filepath.Join("testdata", file), to.host, to.port, to.user, password, to.schema}
			return run(ctx, t, p, to, "", append(command, phases...)...)
		},
	}
}

// ormTest runs the program directly and through the proxy, and with keys that are filled in. For
// the last, the column has AUTO_INCREMENT or not.
func ormTest(t *testing.T, p *place, k keyProgram, schema string) {
	k.find(t)
	p.empty(t, schema, nil)
	direct := k.transcript(t, p, p.server.Addr(), schema, "migrate", "use")
	checkKeys(t, direct)
	p.empty(t, schema, nil)
	through := k.transcript(t, p, p.proxy, schema, "migrate", "use")
	checkKeys(t, through)
	if got, want := text(through), text(direct); got != want {
		t.Errorf("through the proxy: %s", difference(got, want))
	}
	p.empty(t, filled(schema), nil)
	checkFilled(t, k.transcript(t, p, p.proxy, filled(schema), "migrate", "use"), direct)
	p.empty(t, filled(schema), nil)
	made := k.transcript(t, p, p.proxy, filled(schema), "migrate")
	p.withoutAutoIncrement(t, filled(schema))
	used := k.transcript(t, p, p.proxy, filled(schema), "use")
	// A server reports 0 for an explicit key if the column has no AUTO_INCREMENT. Django on MySQL
	// takes that as the key.
	used.replaceZeros("explicit")
	checkFilled(t, append(made, used...), direct)
}

// withoutAutoIncrement removes it from the bound tables.
func (p *place) withoutAutoIncrement(t *testing.T, schema string) {
	t.Helper()
	db := p.server.DB(t, schema)
	for _, table := range boundTables[1:] {
		var kind string
		if err := db.QueryRow("SELECT column_type FROM information_schema.columns WHERE table_schema = ? AND table_name = ? AND column_name = 'id'", schema, table).Scan(&kind); err != nil {
			t.Fatal(err)
		}
		p.server.Exec(t, "USE "+schema, "SET foreign_key_checks = 0", "ALTER TABLE "+table+" MODIFY id "+kind+" NOT NULL")
	}
}
