package backend

import (
	"fmt"
	"slices"
	"testing"
)

func TestAutoIncrementIsTakenOutOfAColumnsDefinitionAndNothingElse(t *testing.T) {
	for _, test := range []struct{ column, line, want string }{
		{"id", "  `id` bigint(20) unsigned NOT NULL AUTO_INCREMENT,", "`id` bigint(20) unsigned NOT NULL"},
		{"id", "  `id` bigint unsigned NOT NULL AUTO_INCREMENT", "`id` bigint unsigned NOT NULL"},
		{"id", "  `id` int(11) unsigned zerofill NOT NULL AUTO_INCREMENT COMMENT 'it''s, AUTO_INCREMENT \\' x',", "`id` int(11) unsigned zerofill NOT NULL COMMENT 'it''s, AUTO_INCREMENT \\' x'"},
		{"id", "  `id` int NOT NULL COMMENT ' AUTO_INCREMENT ' AUTO_INCREMENT,", "`id` int NOT NULL COMMENT ' AUTO_INCREMENT '"},
		{"id", "  `id` bigint NOT NULL AUTO_INCREMENT /*!80023 INVISIBLE */ COMMENT 'a',", "`id` bigint NOT NULL /*!80023 INVISIBLE */ COMMENT 'a'"},
		{"id", "  `id` bigint(20) NOT NULL INVISIBLE AUTO_INCREMENT CHECK (`id` > 0),", "`id` bigint(20) NOT NULL INVISIBLE CHECK (`id` > 0)"},
		{"a ` AUTO_INCREMENT b", "  `a `` AUTO_INCREMENT b` bigint(20) NOT NULL AUTO_INCREMENT,", "`a `` AUTO_INCREMENT b` bigint(20) NOT NULL"},
		{"id", "  `id` bigint(20) NOT NULL COMMENT 'no AUTO_INCREMENT here',", ""},
		{"id", "  `other` bigint(20) NOT NULL AUTO_INCREMENT,", ""},
	} {
		create := "CREATE TABLE `t` (\n  `first` int(11) DEFAULT NULL COMMENT 'AUTO_INCREMENT',\n" + test.line + "\n  PRIMARY KEY (`id`)\n) ENGINE=InnoDB AUTO_INCREMENT=7"
		if got, ok := withoutAutoIncrement(create, test.column); got != test.want || ok != (test.want != "") {
			t.Errorf("%s: got %q, %v, want %q", test.line, got, ok, test.want)
		}
	}
}

func TestTablesAreToldThatSeveralShardsNumber(t *testing.T) {
	opts := Options{Default: "s0", Shards: []ShardOptions{
		{Name: "s0", Nodes: []string{"a:1"}, Schemas: []string{"album0"}}, {Name: "s1", Nodes: []string{"b:1"}, Schemas: []string{"album1"}},
	}}
	shards, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	defer shards.Close()
	see := func(shard, place, schema string, alter ...string) AutoIncrement {
		a := AutoIncrement{Shard: shard, Schema: schema, Table: "photos", Alter: "ALTER " + schema, place: place}
		if len(alter) > 0 {
			a.Alter = alter[0]
		}
		return a
	}
	another := func(a AutoIncrement) AutoIncrement { a.Column = 1; return a }
	for _, test := range []struct {
		name string
		seen []AutoIncrement
		want []string
	}{
		{"one shard", []AutoIncrement{see("s0", "a", "album0")}, nil},
		{"several tables of one shard", []AutoIncrement{see("s0", "a", "album0"), see("s0", "a", "album2")}, nil},
		{"two shards", []AutoIncrement{see("s1", "b", "album1"), see("s0", "a", "album0")}, []string{"s0 ALTER album0", "s1 ALTER album1"}},
		{"one schema on two servers", []AutoIncrement{see("s0", "a", "album0"), see("s1", "b", "album0")}, []string{"s0 ALTER album0", "s1 ALTER album0"}},
		{"columns of two bindings", []AutoIncrement{see("s0", "a", "album0"), another(see("s1", "b", "album1"))}, nil},
		{
			"two shards on one server, each of which sees all",
			[]AutoIncrement{see("s1", "a", "album0"), see("s1", "a", "album1"), see("s0", "a", "album0"), see("s0", "a", "album1")},
			[]string{"s0 ALTER album0", "s1 ALTER album1"},
		},
		{"one table that two shards see", []AutoIncrement{see("s1", "a", "album0"), see("s0", "a", "album0")}, nil},
		{"a replica", []AutoIncrement{see("s0", "a", "album0"), see("s0", "replica", "album0")}, nil},
		{
			"two shards and a replica",
			[]AutoIncrement{see("s0", "replica", "album0"), see("s1", "b", "album1"), see("s0", "a", "album0")},
			[]string{"s0 ALTER album0", "s1 ALTER album1"},
		},
		{
			"an account that sees less",
			[]AutoIncrement{see("s0", "a", "album0", ""), see("s1", "b", "album1"), see("s0", "a", "album0")},
			[]string{"s0 ALTER album0", "s1 ALTER album1"},
		},
	} {
		var got []string
		for _, a := range shards.Routes().OnSeveralShards(test.seen) {
			got = append(got, fmt.Sprintf("%s %s", a.Shard, a.Alter))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}
