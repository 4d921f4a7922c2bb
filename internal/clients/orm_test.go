package clients_test

import (
	"context"
	"path/filepath"
	"testing"
)

// orms are object-relational mappers. Their programs have two phases: migrate makes the
// tables, use fills them.
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

// ormTest runs the program direct and through the proxy.
func ormTest(t *testing.T, p *place, k keyProgram, schema string) {
	k.find(t)
	direct := k.transcript(t, p, p.server.Addr(), schema, nil, "migrate", "use")
	checkKeys(t, direct)
	through := k.transcript(t, p, p.proxy, schema, nil, "migrate", "use")
	checkKeys(t, through)
	if got, want := text(through), text(direct); got != want {
		t.Errorf("through the proxy: %s", difference(got, want))
	}
}
