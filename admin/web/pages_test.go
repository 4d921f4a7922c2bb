package web_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/zap"

	"seqproxy/admin/web"
)

// Prometheus gets the page whatever other scrapers do: many ask at the same time, and do not read
// pages that no socket holds.
func TestScrapersWhoDoNotReadKeepNoOtherFromTheMetrics(t *testing.T) {
	name, kind, long, one := "m", dto.MetricType_GAUGE, strings.Repeat("x", 8<<20), 1.0
	families := []*dto.MetricFamily{{Name: &name, Type: &kind, Metric: []*dto.Metric{{
		Label: []*dto.LabelPair{{Name: &name, Value: &long}}, Gauge: &dto.Gauge{Value: &one},
	}}}}
	begun, held := make(chan struct{}, 16), make(chan struct{})
	release := sync.OnceFunc(func() { close(held) })
	defer release()
	address, _ := serve(t, web.NewPages("1", nil, prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		begun <- struct{}{}
		<-held
		return families, nil
	}), zap.NewNop()))
	const scrape = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
	for range 6 {
		dial(t, address, scrape)
	}
	for range 4 {
		<-begun
	}
	c := dial(t, address, scrape)
	release()
	for _, when := range []string{"while others ask", "while others do not read"} {
		if got := statusLine(t, c); got != "HTTP/1.1 200 OK" {
			t.Errorf("%s: got %q, want 200", when, got)
		}
		c = dial(t, address, scrape)
	}
}
