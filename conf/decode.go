package conf

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/BurntSushi/toml"
)

// syntaxProblem words the decoder's error about a text that is no TOML.
func syntaxProblem(err error) string {
	var parse toml.ParseError
	if !errors.As(err, &parse) {
		return strings.TrimPrefix(err.Error(), "toml: ")
	}
	return fmt.Sprintf("line %d: %s", parse.Position.Line, parse.Message)
}

var (
	// lastKey is how the decoder begins its errors about values.
	lastKey = regexp.MustCompile(`^toml: (?:line \d+ )?\(last key "(.*?)"\): (.*)$`)
	// wrongType is its error about a value of another type.
	wrongType = regexp.MustCompile(`^incompatible types: TOML value has type (.+); destination has type (.+)$`)
	// wrongTable is its error about a value where a table is wanted.
	wrongTable = regexp.MustCompile(`^type mismatch for .+: expected (table) but found (.+)$`)
)

// typeNames are the decoder's names for types in the words of the file. Longer
// names stand before those that they contain.
var typeNames = strings.NewReplacer(
	"primitive (string-like)", "string",
	"[]map[string]any", "list of tables",
	"map[string]any", "table",
	"[]any", "list",
	"slice", "list",
	"int64", "integer",
	"float64", "float",
	"time.Time", "date",
	"boolean", "boolean", // or the next would make it "booleanean"
	"bool", "boolean",
)

// typeProblem words the decoder's error about a value that does not fit its key.
// It leaves the line out: in a list of tables the decoder knows only the last.
func typeProblem(err error) string {
	match := lastKey.FindStringSubmatch(err.Error())
	if match == nil {
		return strings.TrimPrefix(err.Error(), "toml: ")
	}
	key, message := match[1], match[2]
	if types := wrongType.FindStringSubmatch(message); types != nil {
		message = typeMismatch(types[2], types[1])
	} else if types := wrongTable.FindStringSubmatch(message); types != nil {
		message = typeMismatch(types[1], types[2])
	}
	for _, list := range []string{"user", "shard", "shard.node", "sequence.server"} {
		if key == list && strings.Contains(message, "is of type table") {
			message = fmt.Sprintf("is a list: write [[%s]], not [%s]", list, list)
		}
	}
	return key + ": " + message
}

func typeMismatch(want, got string) string {
	return fmt.Sprintf("must be of type %s, is of type %s", typeNames.Replace(want), typeNames.Replace(got))
}
