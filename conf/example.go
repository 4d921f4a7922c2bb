package conf

import _ "embed"

// Example is the sample file: every key with its meaning, and with its default if it has one. It is
// a valid configuration.
//
//go:embed example.toml
var Example string
