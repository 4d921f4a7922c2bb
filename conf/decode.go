package conf

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/BurntSushi/toml"
)

// syntaxProblem describes the decoder's error for a text that is no TOML.
func syntaxProblem(err error) string {
	var parse toml.ParseError
	if !errors.As(err, &parse) {
		return strings.TrimPrefix(err.Error(), "toml: ")
	}
	return fmt.Sprintf("line %d: %s", parse.Position.Line, quoted.ReplaceAllString(parse.Message, `"..."`))
}

// quoted matches a text of the file in an error of the decoder. It may be a password.
var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

var (
	// lastKey matches the start of the decoder's errors about values.
	lastKey = regexp.MustCompile(`^toml: (?:line \d+ )?\(last key "(.*?)"\): (.*)$`)
	// wrongType matches its error about a value of the wrong type.
	wrongType = regexp.MustCompile(`^incompatible types: TOML value has type (.+); destination has type (.+)$`)
	// wrongTable matches its error about a value where there must be a table.
	wrongTable = regexp.MustCompile(`^type mismatch for .+: expected (table) but found (.+)$`)
)

// typeNames translates the decoder's names of types into the words of the file. A longer name
// precedes one that it contains.
var typeNames = strings.NewReplacer(
	"primitive (string-like)", "string",
	"[]map[string]any", "list of tables",
	"map[string]any", "table",
	"[]any", "list",
	"slice", "list",
	"int64", "integer",
	"float64", "float",
	"time.Time", "date",
	"boolean", "boolean", // otherwise the next pair would make it "booleanean"
	"bool", "boolean",
)

// typeProblem describes the decoder's error about a value that does not fit its key. It omits the
// line: for a list of tables the decoder knows only the last one.
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
