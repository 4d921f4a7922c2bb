package proxy

import (
	_ "embed"
	"strings"
	"sync"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
)

// metadataText has the columns of answers about metadata, as servers name them: in each line,
// between tabs, whose they are (mariadb, mysql, both), the words of a SHOW or a table of
// information_schema, and the columns, each with its type unless that is short text.
//
//go:embed metadata.txt
var metadataText string

// metadataKey names columns.
type metadataKey struct {
	mariaDB bool
	name    string // "SHOW ENGINES", "TABLES"
}

// metadataColumns are those of metadataText. They are only read.
var metadataColumns = sync.OnceValue(func() map[metadataKey][]protocol.Column {
	all := make(map[metadataKey][]protocol.Column)
	for line := range strings.Lines(metadataText) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		var columns []protocol.Column
		for _, column := range strings.Split(fields[2], ", ") {
			name, kind, _ := strings.Cut(column, ":")
			columns = append(columns, metadataColumn(name, kind))
		}
		for _, mariaDB := range [...]bool{true, false} {
			if other := map[bool]string{true: "mysql", false: "mariadb"}[mariaDB]; fields[0] != other {
				all[metadataKey{mariaDB, fields[1]}] = columns
			}
		}
	}
	return all
})

// metadataColumn is a column of a type in metadataText.
func metadataColumn(name, kind string) protocol.Column {
	c := textColumn(name, 256)
	switch kind {
	case "text":
		c.Type, c.Length = mysql.MYSQL_TYPE_BLOB, 1<<18
	case "int":
		c = protocol.Column{Name: name, Charset: charsetBinary, Length: 21, Type: mysql.MYSQL_TYPE_LONGLONG, Flags: flagBinary}
	case "uint":
		c = protocol.Column{Name: name, Charset: charsetBinary, Length: 21, Type: mysql.MYSQL_TYPE_LONGLONG, Flags: flagUnsigned | flagBinary}
	case "float":
		c = protocol.Column{Name: name, Charset: charsetBinary, Length: 22, Type: mysql.MYSQL_TYPE_DOUBLE, Flags: flagBinary, Decimals: 31}
	case "time":
		c = protocol.Column{Name: name, Charset: charsetBinary, Length: 19, Type: mysql.MYSQL_TYPE_DATETIME, Flags: flagBinary}
	}
	return c
}

// columnsLike returns the columns as the session's server has them, or the other one where only that
// has them; nil if nobody has.
func (s *session) columnsLike(name string) []protocol.Column {
	mariaDB := s.likeMariaDB()
	if columns := metadataColumns()[metadataKey{mariaDB, name}]; columns != nil {
		return columns
	}
	return metadataColumns()[metadataKey{!mariaDB, name}]
}
