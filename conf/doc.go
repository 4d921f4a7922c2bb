// Package conf reads the configuration of the proxy: a TOML file, read strictly.
//
// Start at [Load]. It takes [Default], decodes the file, refuses unknown keys, reads passwords from
// their places, and validates the result. It reports all problems at once, each with file, key,
// value and what is allowed. [Example] is a sample with comments, and names every key. Package docs
// makes docs/config.md from the structs.
//
// A loaded [Config] is complete: it has all defaults, even those that depend on other keys, and all
// passwords. It does not change after that. Any goroutine may use it.
package conf

//go:generate go run ./docs/cmd ../docs/config.md
