package web_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"seqproxy/admin/web"
	"seqproxy/sequence"
	"seqproxy/sequence/kind"
	"seqproxy/test/mysqltest"
)

func TestSequenceMetrics(t *testing.T) {
	server := mysqltest.Shared(t)
	s, err := sequence.New(sequence.Options{
		Servers: []sequence.ServerOptions{{Addr: server.Addr(), User: "root", Database: server.Schema(t)}},
		Tuning:  sequence.Tuning{CreateTable: true, CacheSize: 10, OutageCover: time.Nanosecond}, StateDir: t.TempDir() + "/state",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), patience)
		defer stop()
		_ = s.Close(ctx)
	})
	registry := web.NewRegistry(web.Build{}, web.SequenceCollector(s))
	for name, order := range map[string]bool{"photos": false, "unused": false, "strict": true, `a "b\c`: false} {
		if _, err := s.Create(t.Context(), sequence.CreateOptions{Name: name, Order: order}); err != nil {
			t.Fatal(err)
		}
		if name == "unused" {
			if _, err := s.Exists(t.Context(), []byte(name)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for range 3 {
			if _, err := s.Take(t.Context(), []byte(name), 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	snowflake, err := kind.NewSnowflake(kind.DefaultLayout(), false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(t.Context(), sequence.CreateOptions{Name: "tweets", Kind: snowflake}); err != nil {
		t.Fatal(err)
	}
	key, err := s.Take(t.Context(), []byte("tweets"), 1)
	if err != nil {
		t.Fatal(err)
	}
	_, worker, _ := snowflake.Decompose(key)
	got := metrics(t, registry)
	for _, want := range []string{
		fmt.Sprintf(`seqproxy_sequence_worker{sequence="tweets"} %d`, worker),
		`seqproxy_sequence_clock_refusals_total{sequence="tweets"} 0`,
		`seqproxy_sequence_clock_steps_total{sequence="tweets"} 0`,
		`seqproxy_sequence_numbers_given_total{sequence="photos"} 3`,
		`seqproxy_sequence_numbers_given_total{sequence="a \"b\\c"} 3`,
		`seqproxy_sequence_numbers_given_total{sequence="unused"} 0`,
		`seqproxy_sequence_numbers_given_total{sequence="other"} 0`,
		`seqproxy_sequence_numbers_unused_total{reason="unknown_commit",sequence="photos"} 0`,
		`seqproxy_sequence_cached_numbers{sequence="strict"} 0`,
		`seqproxy_sequence_cache_size{sequence="photos"} 10`,
		`seqproxy_sequence_cover_seconds{sequence="unused"} +Inf`,
		`seqproxy_sequence_order_skew_seconds{sequence="strict"} 0`,
		`seqproxy_sequence_order_home_up{sequence="strict"} 1`,
		`seqproxy_sequence_wait_seconds_count{sequence="photos"} 1`,
		`seqproxy_sequence_waits_failed_total{sequence="photos"} 0`,
		`seqproxy_sequence_reservations_total{result="ok",sequence="strict"} 3`,
		`seqproxy_sequence_reservations_total{result="unknown",sequence="strict"} 0`,
		`seqproxy_sequence_rewinds_total{sequence="photos"} 0`,
		`seqproxy_sequence_epoch{sequence="photos"} 0`,
		`seqproxy_sequence_plan_number 0`,
		`seqproxy_sequences 5`,
		fmt.Sprintf(`seqproxy_sequence_server_up{server="%s"} 1`, server.Addr()),
		fmt.Sprintf(`seqproxy_sequence_server_rewinds_total{server="%s"} 0`, server.Addr()),
		fmt.Sprintf(`seqproxy_sequence_server_node_info{node="%[1]s",server="%[1]s"} 1`, server.Addr()),
		`seqproxy_state_file_usable 1`,
	} {
		if !strings.Contains(got, "\n"+want+"\n") {
			t.Errorf("got no %s, want it", want)
		}
	}
	for _, unwanted := range []string{
		`seqproxy_sequence_cover_seconds{sequence="strict"}`, `seqproxy_sequence_order_skew_seconds{sequence="unused"}`,
		`seqproxy_sequence_worker{sequence="photos"}`, `seqproxy_sequence_clock_steps_total{sequence="photos"}`, `seqproxy_sequence_clock_refusals_total{sequence="other"}`,
		`seqproxy_sequence_exhaustion_timestamp_seconds{sequence="unused"}`, `seqproxy_sequence_used_ratio{sequence="other"}`,
	} {
		if strings.Contains(got, unwanted) {
			t.Errorf("got %s, want it left out", unwanted)
		}
	}
	ahead := regexp.MustCompile(`(?m)^seqproxy_clock_ahead_seconds (.*)$`).FindStringSubmatch(got)
	if ahead == nil {
		t.Error("got no metric of how far the clock is ahead, want one")
	} else if by, err := strconv.ParseFloat(ahead[1], 64); err != nil || by < -5 || by > 5 {
		t.Errorf("how far the clock is ahead: got %v seconds, %v", by, err)
	}
	for _, name := range []string{"photos", "strict", "unused"} {
		sum := func(metric string) (sum float64) {
			found := regexp.MustCompile(`(?m)^seqproxy_sequence_`+metric+`{.*sequence="`+name+`"} (.*)$`).FindAllStringSubmatch(got, -1)
			if found == nil {
				t.Errorf("got no %s of %s, want it", metric, name)
			}
			for _, one := range found {
				value, err := strconv.ParseFloat(one[1], 64)
				if err != nil {
					t.Error(err)
				}
				sum += value
			}
			return sum
		}
		parts := sum("numbers_given_total") + sum("cached_numbers") + sum("numbers_unused_total")
		if reserved := sum("numbers_reserved_total"); reserved != parts || (reserved == 0) != (name == "unused") {
			t.Errorf("%s: %v numbers are reserved, and %v are given, cached or unused", name, reserved, parts)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
}
