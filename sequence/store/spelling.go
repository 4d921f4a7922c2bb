package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/sequence/link"
)

// ErrNoText is the error for a name whose bytes are not text in its character set, or that UTF-8
// cannot hold.
var ErrNoText = errors.New("is no text in its character set")

// InUTF8 lets the server convert a name to UTF-8. The charset becomes part of the statement. It may
// be what a shard says, which is not trusted, so it must be a plain word.
func (st *Store) InUTF8(ctx context.Context, charset string, name []byte) (string, error) {
	if strings.Trim(charset, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		return "", ErrNoText
	}
	conn, err := st.Conn(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	var text sql.NullString
	err = conn.QueryRowContext(ctx, fmt.Sprintf("SELECT CONVERT(_%s X'%X' USING utf8mb4)", charset, name)).Scan(&text)
	switch {
	case link.HasCode(err, gomysql.ER_UNKNOWN_CHARACTER_SET, gomysql.ER_INVALID_CHARACTER_STRING, gomysql.ER_PARSE_ERROR, link.CannotConvert, link.CannotConvertMariaDB):
		return "", fmt.Errorf("%w: %w", ErrNoText, err)
	case err != nil:
		return "", fmt.Errorf("convert a name from %s: %w", charset, err)
	case !text.Valid, strings.Count(text.String, "?") > bytes.Count(name, []byte("?")):
		// the placeholder for an unknown character
		return "", ErrNoText
	}
	return text.String, nil
}
