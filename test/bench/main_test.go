package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"seqproxy/internal/mysqld"
)

// TestMain lets the test program be the target "relay", as the real program can.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == relayCommand {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		if err := runRelay(ctx, os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		stop()
		return
	}
	m.Run()
}

// privateTemp sets a directory for all temporary files. It must be empty at the end.
func privateTemp(t *testing.T) {
	t.Helper()
	if err := checkPlatform(); err != nil {
		t.Skip(err)
	}
	if b, err := mysqld.Find(""); err != nil {
		t.Skip(err)
	} else if b.Flavour != mysqld.MariaDB {
		t.Skip("needs MariaDB, found ", b)
	}
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Cleanup(func() {
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(files) > 0 {
			t.Errorf("temporary files remain: %v, %v", files, err)
		}
	})
}

func TestWorkloadsRunAgainstARealServer(t *testing.T) {
	privateTemp(t)
	figures := filepath.Join(t.TempDir(), "figures.json")
	targets := direct + "," + relay
	if _, err := findHAProxy(); err == nil {
		targets += "," + haproxy
	}
	var out strings.Builder
	only := "^(select1_c16pin|point_text_c1|point_prepared_c1|pipeline_c4|connect_c8|nextval_c16|insert_c16|insert_prepared_c16|bigresult)$"
	err := run(t.Context(), []string{"-targets", targets, "-rounds", "1", "-time", "50ms", "-only", only, "-json", figures}, &out, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(figures)
	if err != nil {
		t.Fatal(err)
	}
	var rep report
	if err := json.Unmarshal(text, &rep); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range rep.Results {
		seen[r.Workload] = true
		if r.Error != "" {
			t.Errorf("%s with %s: %s", r.Workload, r.Contender, r.Error)
		}
		if speed := r.Figures[opsPerSecond] + r.Figures[mbPerSecond]; speed <= 0 {
			t.Errorf("%s with %s: got %v", r.Workload, r.Contender, r.Figures)
		}
	}
	for name := range strings.SplitSeq(strings.Trim(only, "^()$"), "|") {
		if !seen[name] {
			t.Errorf("%s was not measured", name)
		}
		if !strings.Contains(out.String(), "(`"+name+"`)") {
			t.Errorf("%s was not printed", name)
		}
	}
}

func TestInterruptedRunLeavesNothingAndPrintsWhatItHas(t *testing.T) {
	privateTemp(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out strings.Builder
	// The second round begins after the first was measured.
	err := run(ctx, []string{"-targets", direct, "-rounds", "1000000", "-time", "100ms", "-only", "^select1_c1$"}, &out, cancelAt{"round 2\n", cancel})
	if err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("got %v, want it interrupted", err)
	}
	if !strings.Contains(out.String(), "| direct |") || !strings.Contains(out.String(), "not complete") {
		t.Errorf("got %q, want the table of one round with a note", out.String())
	}
}

// cancelAt cancels a run when it prints a text.
type cancelAt struct {
	text   string
	cancel func()
}

func (c cancelAt) Write(p []byte) (int, error) {
	if strings.HasSuffix(string(p), c.text) {
		c.cancel()
	}
	return len(p), nil
}

func TestProxyThatDoesNotStartEndsTheRunWithItsOutput(t *testing.T) {
	privateTemp(t)
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\necho cannot start: no luck\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	err := run(t.Context(), []string{"-targets", "direct,seqproxy", "-seqproxy", broken, "-only", "^select1_c1$"}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "no luck") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("got %v, want what the program printed and its exit status", err)
	}
}

func TestWrongFlagsAreRefused(t *testing.T) {
	for _, args := range [][]string{{"-targets", "oracle"}, {"-rounds", "0"}, {"-time", "1ms"}, {"-only", "("}, {"surplus"}, {"-only", "^nothing$"}} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("%v: got no error", args)
		} else if errors.Is(err, context.Canceled) {
			t.Errorf("%v: got %v", args, err)
		}
	}
}
