package statefile

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// header begins the first line. The number of lines that were written together with it and a
// checksum follow. All these lines were on disk before the file got its name, so none may be
// missing.
const header = "seqproxy state 1, lines: "

// anyHeader begins the files of all versions.
const anyHeader = "seqproxy state "

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encode returns one line: a checksum of the rest, then each key and its value as quoted Go
// strings. So they contain no line end.
func encode(records map[string]string) []byte {
	var text []byte
	for _, key := range slices.Sorted(maps.Keys(records)) {
		text = append(text, ' ')
		text = strconv.AppendQuoteToASCII(text, key)
		text = append(text, '=')
		text = strconv.AppendQuoteToASCII(text, records[key])
	}
	line := make([]byte, 0, len(text)+9)
	line = fmt.Appendf(line, "%08x", crc32.Checksum(text, castagnoli))
	return append(append(line, text...), '\n')
}

// encodeAll returns a whole file, with one line for each key.
func encodeAll(values map[string]string) []byte {
	data := fmt.Appendf(nil, "%s%d", header, len(values))
	data = fmt.Appendf(data, ", %08x\n", crc32.Checksum(data, castagnoli))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		data = append(data, encode(map[string]string{key: values[key]})...)
	}
	return data
}

// decode reads a file. torn is the length of an incomplete last line.
func decode(data []byte) (values map[string]string, torn int, err error) {
	first, rest, ok := bytes.Cut(data, []byte("\n"))
	version, isState := strings.CutPrefix(string(first), anyHeader)
	switch {
	case !ok || !isState:
		return nil, 0, errors.New("it does not begin as a state file of seqproxy does")
	case !strings.HasPrefix(string(first), header):
		number, _, _ := strings.Cut(version, ",")
		return nil, 0, fmt.Errorf("it has the format %q, which this version does not know (a newer one wrote it)", number)
	}
	said, sum, _ := strings.Cut(string(first[len(header):]), ", ")
	whole, err := strconv.Atoi(said)
	if err != nil || whole < 0 || sum != fmt.Sprintf("%08x", crc32.Checksum([]byte(header+said), castagnoli)) {
		return nil, 0, fmt.Errorf("its first line is damaged: %q", first)
	}
	values = make(map[string]string)
	lines := 0
	for number := 2; len(rest) > 0; number++ {
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		if !ended || !decodeLine(line, values) {
			if len(after) > 0 || lines < whole {
				return nil, 0, fmt.Errorf("line %d is damaged (it does not fit its checksum), and that was no crash", number)
			}
			return values, len(rest), nil
		}
		lines++
		rest = after
	}
	if lines < whole {
		return nil, 0, fmt.Errorf("it has lost its end: %d of %d lines are left", lines, whole)
	}
	return values, 0, nil
}

// decodeLine adds the records of a line to values. If the line is damaged, it returns false and
// adds nothing.
func decodeLine(line []byte, values map[string]string) bool {
	if len(line) < 8 {
		return false
	}
	sum, err := strconv.ParseUint(string(line[:8]), 16, 32)
	if err != nil || uint32(sum) != crc32.Checksum(line[8:], castagnoli) {
		return false
	}
	records := make(map[string]string)
	for text := string(line[8:]); text != ""; {
		var key, value string
		var ok bool
		if key, text, ok = cutQuoted(text, " "); !ok {
			return false
		}
		if value, text, ok = cutQuoted(text, "="); !ok {
			return false
		}
		records[key] = value
	}
	maps.Copy(values, records)
	return true
}

// cutQuoted reads a quoted string after sign.
func cutQuoted(text, sign string) (s, rest string, ok bool) {
	text, ok = strings.CutPrefix(text, sign)
	if !ok {
		return "", "", false
	}
	quoted, err := strconv.QuotedPrefix(text)
	if err != nil {
		return "", "", false
	}
	s, err = strconv.Unquote(quoted)
	return s, text[len(quoted):], err == nil
}
