package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"seqproxy/conf"
)

// maxHealth bounds the part of an answer that is read, in bytes.
const maxHealth = 4096

// health asks the proxy on this machine whether it lives or, with -ready, whether clients should
// come. It is for containers that have only the program.
func (p *program) health(ctx context.Context, args []string) error {
	c := newCommand("health")
	address := c.String("http", conf.Default().HTTP.Listen, "`HOST:PORT` of http.listen")
	ready := c.Bool("ready", false, "whether clients should come (/readyz), not whether it lives (/healthz)")
	timeout := c.Duration("timeout", 5*time.Second, "`TIME` to wait for the answer")
	if err := c.parse(args, p.out); err != nil {
		return err
	}
	if err := noMore("health", c.Args()); err != nil {
		return err
	}
	if *timeout <= 0 {
		return usagef("-timeout must be above 0, is %v", *timeout)
	}
	host, port, err := net.SplitHostPort(*address)
	if _, wrong := strconv.ParseUint(port, 10, 16); err != nil || wrong != nil {
		return usagef("-http must be HOST:PORT such as %s, is %q", conf.Default().HTTP.Listen, *address)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() { // it listens everywhere
		host = "localhost"
	}
	page := "/healthz"
	if *ready {
		page = "/readyz"
	}
	ctx, stop := context.WithTimeout(ctx, *timeout)
	defer stop()
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+page, nil)
	if err != nil {
		return err
	}
	// Ignore HTTP proxies from the environment.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(ask)
	if err != nil {
		return noHealth(*address, *timeout, err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxHealth))
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s says %s: %s", page, answer.Status, strings.TrimSpace(string(text)))
	}
	p.say("%s\n", strings.TrimSpace(string(text)))
	return nil
}

// noHealth is the error if nobody answered, with what to do about it.
func noHealth(address string, timeout time.Duration, err error) error {
	if asked := new(url.Error); errors.As(err, &asked) {
		err = asked.Err // without a second copy of the address
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("nothing within %v", timeout)
	}
	return fmt.Errorf("no proxy answers at %s: %w; see that it runs, and that its http.listen is there, or name that with -http HOST:PORT", address, err)
}
