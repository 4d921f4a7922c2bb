package backend

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"seqproxy/test/mysqltest"
)

// A shard may have many thousands of tables, and each column is asked for alone.
func TestToLookForAutoIncrementReadsNoOtherTables(t *testing.T) {
	s := mysqltest.StartUnsynced(t)
	first, second := s.Schema(t), s.Schema(t)
	table := "photos_of_" + first
	s.Exec(t, fmt.Sprintf("CREATE TABLE %s.%s (id BIGINT AUTO_INCREMENT PRIMARY KEY)", first, table),
		fmt.Sprintf("CREATE TABLE %s.plain (id BIGINT PRIMARY KEY)", first),
		fmt.Sprintf("CREATE VIEW %s.%s AS SELECT id FROM %s.%s", second, table, first, table))
	c, err := s.DB(t, "").Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(ctx context.Context, text string) ([][]string, error) {
		if strings.HasPrefix(text, "SELECT") {
			plan, err := answer(ctx, c, "EXPLAIN "+text)
			if err != nil {
				return nil, err
			}
			// MariaDB says so where it knows neither the schema nor the table.
			if strings.Contains(fmt.Sprint(plan), "Scanned all databases") {
				t.Errorf("%s: %q", text, plan)
			}
		}
		return answer(ctx, c, text)
	}
	columns := []Column{{first, table, "id"}, {"", table, "id"}, {second, table, "id"}, {first, "plain", "id"}}
	found, err := FindAutoIncrements(t.Context(), ask, "s", columns)
	var got []string
	for _, a := range found {
		got = append(got, fmt.Sprint(a.Column, " ", a.Schema, " ", a.Alter != ""))
	}
	if want := []string{"0 " + first + " true", "1 " + first + " true"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q and %v, want %q", got, err, want)
	}
}

// answer returns the rows of a statement. A NULL is "".
func answer(ctx context.Context, c *sql.Conn, text string) (all [][]string, err error) {
	rows, err := c.QueryContext(ctx, text)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		row, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		texts := make([]string, len(row))
		for i := range row {
			texts[i] = row[i].String
		}
		all = append(all, texts)
	}
	return all, rows.Err()
}
