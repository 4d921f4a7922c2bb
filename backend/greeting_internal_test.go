package backend

import (
	"testing"

	"seqproxy/protocol"
)

// Checklist 3.
func TestClientsAreOfferedWhatEveryServerHas(t *testing.T) {
	const common = protocol.Protocol41 | protocol.SecureConnection | protocol.DeprecateEOF
	mariadb := &Hello{Version: "11.8.3-MariaDB", MariaDB: true, Capabilities: common | protocol.Progress | protocol.CacheMetadata | protocol.BulkUnitResults}
	older := &Hello{Version: "5.5.5-10.11.6-MariaDB", MariaDB: true, Capabilities: common | protocol.Progress | protocol.CacheMetadata}
	mysql := &Hello{Version: "9.7.4", Capabilities: common | protocol.LongPassword | protocol.QueryAttributes | protocol.OptionalMetadata}
	for _, c := range []struct {
		what    string
		servers []*Hello // nil: it never answered
		want    protocol.Capability
	}{
		{"MySQL", []*Hello{mysql}, mysql.Capabilities},
		{"MariaDB", []*Hello{mariadb}, mariadb.Capabilities},
		{"two MariaDB", []*Hello{mariadb, older}, older.Capabilities},
		{"MariaDB and one that never answered", []*Hello{mariadb, nil}, mariadb.Capabilities},
		// A mixed set gets MySQL's greeting. MariaDB's would announce extended flags, and there
		// would be none.
		{"MariaDB, then MySQL", []*Hello{mariadb, mysql}, common | protocol.LongPassword},
		{"MySQL, then MariaDB", []*Hello{mysql, older}, common | protocol.LongPassword},
	} {
		opts := Options{Default: "s0"}
		for i := range c.servers {
			opts.Shards = append(opts.Shards, ShardOptions{Name: "s" + string(rune('0'+i)), Nodes: []string{"127.0.0.1:1"}})
		}
		s, err := New(opts)
		if err != nil {
			t.Fatal(err)
		}
		for i, h := range c.servers {
			if h != nil {
				s.Routes().shards[i].primary().learn(*h)
			}
		}
		got, ok := s.Routes().Greeting()
		if !ok || got.Capabilities != c.want || got.Version != c.servers[0].Version {
			t.Errorf("%s: got %x of %s, %v, want %x of %s", c.what, uint64(got.Capabilities), got.Version, ok, uint64(c.want), c.servers[0].Version)
		}
	}
}
