// Package conf is the configuration of the proxy: a TOML file, read strictly.
//
// [Load] starts from [Default], decodes the file, refuses keys that do not
// exist, reads passwords from where the file says they are, and validates. All
// that is wrong is reported at once, each with file, key, value and what is
// allowed. [Example] is the commented sample; it names every key.
// docs/config.md is made of the structs by package docs.
//
// A loaded [Config] is complete: defaults that depend on other keys are filled
// in and every password is resolved. It is not changed afterwards, and parts of
// it may be handed to any goroutine.
package conf

//go:generate go run ./docs/cmd ../docs/config.md
