package inspect

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// oldest are the first releases that seqproxy works with.
var oldest = map[string][2]int{"MariaDB": {10, 2}, "MySQL": {5, 7}}

// ends are the last days of support, by kind and number:
// https://mariadb.org/about/#maintenance-policy, https://www.mysql.com/support/eol-notice.html
var ends = map[string]string{
	"MariaDB 10.2": "2022-05-23", "MariaDB 10.3": "2023-05-25", "MariaDB 10.4": "2024-06-18", "MariaDB 10.5": "2025-06-24",
	"MariaDB 10.6": "2026-07-06", "MariaDB 10.7": "2023-02-09", "MariaDB 10.8": "2023-05-20", "MariaDB 10.9": "2023-08-22",
	"MariaDB 10.10": "2023-11-17", "MariaDB 10.11": "2028-02-16", "MariaDB 11.0": "2024-06-06", "MariaDB 11.1": "2024-08-21",
	"MariaDB 11.2": "2024-11-21", "MariaDB 11.3": "2024-05-29", "MariaDB 11.4": "2029-05-29", "MariaDB 11.8": "2028-06-04",
	"MySQL 5.7": "2023-10-31", "MySQL 8.0": "2026-04-30", "MySQL 8.1": "2023-10-25", "MySQL 8.2": "2024-01-16",
	"MySQL 8.3": "2024-04-30", "MySQL 8.4": "2032-04-30", "MySQL 9.0": "2024-10-15", "MySQL 9.1": "2025-01-21",
	"MySQL 9.2": "2025-04-15", "MySQL 9.3": "2025-07-22", "MySQL 9.4": "2025-10-21",
}

// CheckVersion checks whether seqproxy and the server's maker support its release.
func (s *Server) CheckVersion(f *Findings, now time.Time) {
	first, rest, _ := strings.Cut(s.Version, ".")
	second, _, _ := strings.Cut(rest, ".")
	major, err := strconv.Atoi(first)
	minor, errMinor := strconv.Atoi(second)
	if err != nil || errMinor != nil {
		f.Warn("version", fmt.Sprintf("its version is %q, neither MySQL's nor MariaDB's", s.Version), "seqproxy is tested with MariaDB and MySQL")
		return
	}
	kind := s.kind()
	least := oldest[kind]
	if major < least[0] || major == least[0] && minor < least[1] {
		f.Wrong("version", fmt.Sprintf("%s is not supported", s.Name()), fmt.Sprintf("seqproxy works with %s %d.%d and later", kind, least[0], least[1]))
		return
	}
	release := fmt.Sprintf("%s %d.%d", kind, major, minor)
	end, listed := ends[release]
	if day, err := time.Parse(time.DateOnly, end); listed && err == nil && now.After(day) {
		f.Warn("version", fmt.Sprintf("%s: the end of life of %s was %s", s.Name(), release, end), "upgrade it")
		return
	}
	f.OK("version", "%s", s.Name())
}
