package lex

// UpperBytes are what the upper bytes of single-byte character sets are, by their names.
func UpperBytes() map[string]string {
	all := make(map[string]string)
	for _, set := range upperBytes {
		all[set.name] = set.classes
	}
	return all
}
