package proxy_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestTheSessionOnThePageOfSequencesIsWhatComesOut(t *testing.T) {
	followSession(t, "sequences.md", 10)
}

func TestTheSessionOnThePageOfKindsIsWhatComesOut(t *testing.T) { followSession(t, "kinds.md", 18) }

// followSession runs the session of a page and compares its output.
func followSession(t *testing.T, name string, least int) {
	page, err := os.ReadFile("../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var steps []string
	for _, session := range regexp.MustCompile("(?ms)^```\n(> .*?)^```$").FindAllStringSubmatch(string(page), -1) {
		steps = append(steps, strings.Split("\n"+session[1], "\n> ")[1:]...)
	}
	if len(steps) < least {
		t.Fatalf("found %d statements on the page, want %d", len(steps), least)
	}
	e := newEnv(t, setup{Shards: 2})
	for i, key := range []string{"70", "900"} {
		e.Servers[i].Exec(t, "USE "+e.Schemas[i], "CREATE TABLE photos (id BIGINT UNSIGNED PRIMARY KEY)", "INSERT INTO photos VALUES ("+key+")")
	}
	c := e.Conn(t, e.Schemas[0], nil)
	for _, step := range steps {
		statement, want, _ := strings.Cut(step, ";\n")
		var lines []string
		if strings.Contains(strings.ToUpper(statement[:6]), "INSERT") {
			exec(t, e.DirectConn(t, 0, e.Schemas[0], nil), statement)
		} else {
			_, rows := table(t, c, statement)
			for _, row := range rows {
				lines = append(lines, strings.Join(row, " | "))
			}
		}
		got := strings.NewReplacer(e.Schemas[0], "album0", e.Schemas[1], "album1").Replace(strings.Join(lines, "\n"))
		if got != strings.TrimSpace(want) {
			t.Errorf("%s\ngot  %s\nwant %s", statement, got, want)
		}
	}
}
