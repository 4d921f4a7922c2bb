package main

import (
	"fmt"
	"strconv"
	"strings"

	"seqproxy/sequence/kind"
)

const decodeUse = "decode 'KIND' KEY ..., where KIND is as in CREATE SEQUENCE: BIT_REVERSED, ROTATE d DIGITS w, SHARD BITS s or SNOWFLAKE with its options, with JSON_SAFE behind it if the sequence has that, " +
	"or UUID [VERSION n] [BINARY] or FORMAT with all that stands behind it"

// decode prints the counters in keys. It asks no server.
func (p *program) decode(args []string) error {
	c := newCommand("decode")
	if err := c.parse(args, p.out); err != nil {
		return err
	}
	if c.NArg() < 2 {
		return usagef("want seqproxy %s", decodeUse)
	}
	k, err := kind.Parse(c.Arg(0))
	if err != nil {
		return usagef("%w", err)
	}
	for _, text := range c.Args()[1:] {
		if k.IsText() {
			key := text
			counter, date, ok := k.Origin(key)
			if !ok {
				return usagef("%q is no key of kind %v", text, k)
			}
			if k.Counts() {
				text += fmt.Sprintf(" counter %d", counter)
			}
			if date != "" {
				text += " time " + date
			}
			p.say("%s%s\n", text, periodIn(k, key))
			continue
		}
		key, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
		if err != nil {
			return usagef("%q is no key: want a whole number, and seqproxy %s", text, decodeUse)
		}
		counter, shard, ok := k.Counter(key)
		switch {
		case !ok:
			return usagef("%d is no key of kind %v, which are from 1 to %d", key, k, k.MaxKey())
		case k.HasClock():
			tick, worker, n := k.Decompose(key)
			p.say("%d time %s worker %d counter %d\n", key, k.TimeOf(tick).Format(kind.TimeLayout), worker, n)
		case k.Name() == kind.ShardBits:
			p.say("%d counter %d shard %d\n", key, counter, shard)
		default:
			p.say("%d counter %d%s\n", key, counter, periodIn(k, text))
		}
	}
	return nil
}

// periodIn says in which period a key was given, where counters begin again.
func periodIn(k kind.Kind, key string) string {
	if !k.Resets() {
		return ""
	}
	is, _ := k.PeriodOf(strings.TrimSpace(key)) // it is a key
	return " period " + k.PeriodName(is)
}
