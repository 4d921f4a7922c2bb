// Command cmd writes docs/config.md. Usage, in the folder of package conf:
// go run ./docs/cmd FILE
//
// Start at run.
package main

import (
	"fmt"
	"os"

	"seqproxy/conf/docs"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: go run ./docs/cmd FILE")
	}
	page, err := docs.Page(".")
	if err != nil {
		return err
	}
	return os.WriteFile(args[0], page, 0o644)
}
