package lex

// UpperBytes returns the classes of the upper bytes of single-byte character sets, by name.
func UpperBytes() map[string]string {
	all := make(map[string]string)
	for _, set := range upperBytes {
		all[set.name] = set.classes
	}
	return all
}

// Single and Upper export single and upper.
func (c Charset) Single() bool      { return c.single() }
func (c Charset) Upper(b byte) byte { return c.upper(b) }
