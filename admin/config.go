package admin

import (
	"fmt"
	"regexp"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/conf"
	"seqproxy/protocol"
	"seqproxy/statement"
)

// applies says from when on a change of a key counts, in the words of docs/config.md.
var applies = map[conf.When]string{conf.WhenNow: "at once", conf.WhenNew: "new sessions", conf.WhenRestart: "restart"}

var variableColumns = []protocol.Column{
	word("name", 160),
	word("value", 1024),
	maybe("default", 128),
	word("change_counts", 16),
}

// element is what tells the elements of a list apart in the name of a key.
var element = regexp.MustCompile(`\["(?:[^"\\]|\\.)*"\]| #[0-9]+`)

func variableRows(c Overview, _ *statement.ProxyCommand) (rows [][]any, _ error) {
	defaults := make(map[string]string)
	for _, k := range conf.Keys() {
		defaults[k.Name] = k.Default
	}
	for _, s := range conf.Settings(c.Config()) {
		rows = append(rows, []any{s.Key, s.Value, unlessEmpty(defaults[element.ReplaceAllString(s.Key, "")]), applies[s.When]})
	}
	return rows, nil
}

var configColumns = []protocol.Column{word("config", 1024)}

func configRows(c Overview, _ *statement.ProxyCommand) (rows [][]any, _ error) {
	for _, line := range conf.Lines(c.Config()) {
		rows = append(rows, []any{line})
	}
	return rows, nil
}

var diffColumns = []protocol.Column{
	word("name", 160),
	maybe("in_force", 1024),
	maybe("in_file", 1024),
	word("change_counts", 16),
}

// diffRows tells what a reload would find changed in the file.
func diffRows(c Overview, _ *statement.ProxyCommand) (rows [][]any, _ error) {
	if c.Config().File() == "" {
		return nil, &protocol.ServerError{
			Code: mysql.ER_NOT_SUPPORTED_YET, State: "42000", Message: "seqproxy: SHOW SEQPROXY CONFIG DIFF needs a file, and this proxy was started without one",
		}
	}
	changes, err := c.ConfigDiff()
	if err != nil {
		return nil, &protocol.ServerError{
			Code: mysql.ER_UNKNOWN_ERROR, State: "HY000", Message: fmt.Sprintf("seqproxy: the file cannot be used as it is: %v", err),
		}
	}
	for _, d := range changes {
		rows = append(rows, []any{d.Key, unlessEmpty(d.Old), unlessEmpty(d.New), applies[d.When]})
	}
	return rows, nil
}
