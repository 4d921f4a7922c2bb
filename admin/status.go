package admin

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
	dto "github.com/prometheus/client_model/go"

	"seqproxy/protocol"
	"seqproxy/statement/ddl"
)

var statusColumns = []protocol.Column{
	word("name", 255),
	{Name: "value", Charset: charsetBinary, Length: 22, Type: mysql.MYSQL_TYPE_DOUBLE, Flags: mysql.BINARY_FLAG, Decimals: 31},
}

// statusRows lists the metrics of /metrics without the prefix. A histogram becomes its count and
// its sum. Of the runtime's metrics it lists only the process's.
func statusRows(c Overview, _ *ddl.ProxyCommand) (rows [][]any, err error) {
	families, err := c.Metrics().Gather()
	if err != nil {
		return nil, fmt.Errorf("gather metrics: %w", err)
	}
	for _, f := range families {
		name, ours := strings.CutPrefix(f.GetName(), "seqproxy_")
		if !ours && !strings.HasPrefix(name, "process_") {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := labelsOf(m)
			add := func(suffix string, value float64) {
				var v any = value
				if math.IsInf(value, 0) || math.IsNaN(value) {
					v = nil
				}
				rows = append(rows, []any{name + suffix + labels, v})
			}
			switch {
			case m.Counter != nil:
				add("", m.Counter.GetValue())
			case m.Gauge != nil:
				add("", m.Gauge.GetValue())
			case m.Histogram != nil:
				add("_count", float64(m.Histogram.GetSampleCount()))
				add("_sum", m.Histogram.GetSampleSum())
			case m.Summary != nil:
				add("_count", float64(m.Summary.GetSampleCount()))
				add("_sum", m.Summary.GetSampleSum())
			case m.Untyped != nil:
				add("", m.Untyped.GetValue())
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b []any) int { return strings.Compare(a[0].(string), b[0].(string)) })
	return rows, nil
}

// labelsOf writes the labels of a metric as Prometheus does, or "".
func labelsOf(m *dto.Metric) string {
	if len(m.GetLabel()) == 0 {
		return ""
	}
	all := make([]string, 0, len(m.GetLabel()))
	for _, l := range m.GetLabel() {
		all = append(all, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
	}
	return "{" + strings.Join(all, ",") + "}"
}
