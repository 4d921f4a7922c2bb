package lex

// UpperBytes are what the upper bytes of single-byte character sets are, by their names.
func UpperBytes() map[string]string {
	all := make(map[string]string)
	for _, set := range upperBytes {
		all[set.name] = set.classes
	}
	return all
}

// Single and Upper are what a character set's bytes are to the lexer.
func (c Charset) Single() bool      { return c.single() }
func (c Charset) Upper(b byte) byte { return c.upper(b) }
