package inspect

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestVersionsAreToldByTheirEnd(t *testing.T) {
	day := func(s string) time.Time {
		d, err := time.Parse(time.DateOnly, s)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for _, c := range []struct {
		version, comment, now string
		level                 Level
	}{
		{"10.11.6-MariaDB-log", "", "2026-01-01", OK},
		{"5.5.5-10.11.6-MariaDB-log", "", "2028-03-01", Warning},
		{"8.0.36", "MySQL Community Server - GPL", "2026-04-30", OK},
		{"8.0.36", "MySQL Community Server - GPL", "2026-05-02", Warning},
		{"5.6.51", "", "2020-01-01", Wrong},
		{"10.1.2-MariaDB", "", "2015-01-01", Wrong},
		{"99.1.0", "", "2026-01-01", OK},
		{"next", "", "2026-01-01", Warning},
	} {
		s := &Server{Version: strings.TrimPrefix(c.version, "5.5.5-"), MariaDB: strings.Contains(c.version, "MariaDB")}
		var f Findings
		s.CheckVersion(&f, day(c.now))
		if len(f.All) != 1 || f.All[0].Level != c.level {
			t.Errorf("%s on %s: got %+v, want %s", c.version, c.now, f.All, c.level)
		}
	}
	var releases []string
	for release, end := range ends {
		if _, err := time.Parse(time.DateOnly, end); err != nil || slices.Contains(releases, release) {
			t.Errorf("%s: the end is %q", release, end)
		}
		releases = append(releases, release)
	}
}
