package ticket

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"seqproxy/sequence/link"
)

// setUpSource sets the session of a connection to any server. lossy says why the server could lose
// what it has committed.
func setUpSource(ctx context.Context, conn *sql.Conn, silence time.Duration) (lossy string, err error) {
	if err := link.SetUpSession(ctx, conn, silence); err != nil {
		return "", err
	}
	var readOnly, flush string
	if err := conn.QueryRowContext(ctx, "SELECT @@GLOBAL.read_only, @@GLOBAL.innodb_flush_log_at_trx_commit").Scan(&readOnly, &flush); err != nil {
		return "", fmt.Errorf("read settings: %w", err)
	}
	switch {
	case !link.IsOff(readOnly):
		return "", errors.New("the server is read only: name the primary, where applications take their numbers")
	case flush != "1":
		return "innodb_flush_log_at_trx_commit is " + flush, nil
	}
	return "", nil
}

// sourcesBegin starts the list of tables in the comment of a sequence that was made from them.
const sourcesBegin = "imported from "

// withSource returns the comment with the name of a table added.
func withSource(comment, from string) string {
	switch {
	case comment == "":
		return sourcesBegin + from
	case strings.Contains(comment, sourcesBegin):
		return comment + ", " + from
	}
	return comment + "; " + sourcesBegin + from
}

// namesSource reports whether a comment names a table.
func namesSource(comment, from string) bool {
	_, sources, _ := strings.Cut(comment, sourcesBegin)
	return strings.Contains(", "+sources+",", ", "+from+",")
}
