package conf

import _ "embed"

// Example is the sample file: every key with its meaning, and with its default
// where it has one. It loads as it is.
//
//go:embed example.toml
var Example string
