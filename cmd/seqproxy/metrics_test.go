package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"

	"seqproxy/test/mysqltest"
)

// metric describes a metric.
type metric struct {
	kind, help string
	labels     []string // sorted
}

// scrape reads /metrics. A metric's labels are all labels of its series.
func scrape(t *testing.T, address string) (all map[string]metric, text string) {
	t.Helper()
	status, text := get(t, address, "/metrics")
	if status != 200 {
		t.Fatalf("/metrics: got %d %s", status, text)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	all = make(map[string]metric)
	for name, family := range families {
		if family.GetHelp() == "" {
			t.Errorf("%s has no help", name)
		}
		labels := make(map[string]bool)
		for _, series := range family.GetMetric() {
			for _, l := range series.GetLabel() {
				labels[l.GetName()] = true
			}
		}
		all[name] = metric{strings.ToLower(family.GetType().String()), family.GetHelp(), slices.Sorted(maps.Keys(labels))}
	}
	return all, text
}

// eventful starts a proxy and causes everything that metrics are about, so that all exist. It
// returns the HTTP address.
func eventful(t *testing.T) (address string) {
	t.Helper()
	s := mysqltest.Start(t)
	schema := s.Schema(t)
	file := write(t, "seqproxy.toml", fmt.Sprintf(`
listen = "127.0.0.1:0"
http.listen = "127.0.0.1:0"
admin.listen = ""
admin_users = ["root"]
[[user]]
name = "root"
[sequence]
state_dir = "state"
cache = 10
[[sequence.server]]
address = %[1]q
user = "root"
[[shard]]
name = "main"
[[shard.node]]
address = %[1]q
`, s.Addr()))
	p := begin(t, "-config", file)
	clients, address := p.address(), p.httpAddress()
	query(t, clients, "root", "", `CREATE SEQUENCE photos MAXVALUE 100000; CREATE SEQUENCE strict ORDER; CREATE SEQUENCE tweets SNOWFLAKE;
		SELECT NEXTVAL('photos'), NEXTVAL('strict'), NEXTVAL('tweets');
		CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (NEXTVAL('photos')); SELECT * FROM t; CREATE TEMPORARY TABLE u (a INT); DO GET_LOCK('a', 0)`, schema)
	for _, c := range [][]string{{"root", "wrong"}, {"nobody", ""}} {
		if output, err := client(t, clients, c[0], c[1], "-e", "SELECT 1"); err == nil {
			t.Fatalf("%s was let in: %s", c[0], output)
		}
	}
	if output, err := client(t, clients, "root", "", "-e", "SELECT * FROM missing.missing"); err == nil {
		t.Fatalf("an unknown table: %s", output)
	}
	db, err := sql.Open("mysql", "root@tcp("+clients+")/"+schema)
	if err != nil {
		t.Fatal(err)
	}
	pinned, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = pinned.Close(), db.Close() })
	if _, err := pinned.ExecContext(t.Context(), "CREATE TEMPORARY TABLE v (a INT)"); err != nil {
		t.Fatal(err)
	}
	p.signal(syscall.SIGHUP)
	p.await("reloaded")
	return address
}

// metricSections are the tables of docs/metrics.md, by prefix of the metrics. The first match
// counts.
var metricSections = []struct{ table, names string }{
	{"servers", `sequence_server_|sequence_plan_`},
	{"sequences", `sequence|clock_`},
	{"shards", `shard_|node_`},
	{"clients", `client_|sessions|statement|suspect_|proxy_`},
	{"proxy", `build_|ready|draining|config_|state_`},
}

// metricTables makes the tables of the page from a proxy's metrics.
func metricTables(t *testing.T, metrics map[string]metric) map[string]string {
	t.Helper()
	tables := make(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		short, ours := strings.CutPrefix(name, "seqproxy_")
		if !ours {
			if !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
				t.Errorf("got %s, whose name fits no table of the page", name)
			}
			continue
		}
		at := slices.IndexFunc(metricSections, func(s struct{ table, names string }) bool {
			return regexp.MustCompile(`^(?:` + s.names + `)`).MatchString(short)
		})
		if at < 0 {
			t.Errorf("%s belongs to no section of docs/metrics.md", name)
			continue
		}
		table, is := metricSections[at].table, metrics[name]
		if tables[table] == "" {
			tables[table] = "| metric | type | labels | meaning |\n|---|---|---|---|\n"
		}
		tables[table] += fmt.Sprintf("| `%s` | %s | %s| %s |\n", name, is.kind, backQuote(is.labels), strings.TrimSuffix(is.help, "."))
	}
	return tables
}

func repositoryFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestMetricsAreThoseOfThePageTheAlertsAndTheDashboard makes the page from the metrics. Alerts and
// dashboard must use no others.
func TestMetricsAreThoseOfThePageTheAlertsAndTheDashboard(t *testing.T) {
	address := eventful(t)
	metrics, text := scrape(t, address)
	keepPage(t, "metrics.md", metricTables(t, metrics))

	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	alerts, tests := repositoryFile(t, "deploy/prometheus/alerts.yml"), repositoryFile(t, "cmd/seqproxy/testdata/alerts_test.yml")
	if err := yaml.Unmarshal([]byte(alerts), &rules); err != nil {
		t.Fatal(err)
	}
	expressions := queried{metrics}
	found := 0
	described := make(map[string]bool)
	var list strings.Builder
	for _, a := range alarmTexts {
		for _, name := range a.alerts {
			described[name] = true
			if !strings.Contains(alerts, "alert: "+name+"\n") {
				t.Errorf("alarmTexts has the alert %s, which is not in alerts.yml", name)
			}
		}
		wrapAt(&list, 120, "* ", strings.TrimSpace(backQuote(a.alerts))+": "+a.meaning+".")
		wrapAt(&list, 120, "  ", "**Do**: "+a.do+".")
	}
	keepPage(t, "alarms.md", map[string]string{"alarms": list.String()})
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			found++
			labels := expressions.check(t, "alert "+rule.Alert, rule.Expr)
			for _, text := range rule.Annotations {
				for _, use := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(text, -1) {
					if !slices.Contains(labels, use[1]) {
						t.Errorf("alert %s names the label %s, which its expression does not have: %q", rule.Alert, use[1], labels)
					}
				}
			}
			if rule.Labels["severity"] == "" || rule.Annotations["summary"] == "" {
				t.Errorf("alert %s has no severity or no summary", rule.Alert)
			}
			if !strings.Contains(tests, `alertname="`+rule.Alert+`"`) {
				t.Errorf("alert %s is in no test of testdata/alerts_test.yml", rule.Alert)
			}
			if !described[rule.Alert] {
				t.Errorf("alarmTexts does not say what to do about %s", rule.Alert)
			}
		}
	}
	if found < 10 {
		t.Errorf("found %d alerts, want more: the test does not see them", found)
	}

	found = 0
	var dashboard any
	if err := json.Unmarshal([]byte(repositoryFile(t, "deploy/grafana/seqproxy.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	eachString(dashboard, func(key, value string) {
		switch values := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`).FindStringSubmatch(value); {
		case key == "expr":
			found++
			expressions.check(t, "dashboard", value)
		case key == "query" && values != nil:
			if labels := expressions.check(t, "dashboard", values[1]); !slices.Contains(labels, values[2]) {
				t.Errorf("dashboard: %s has no label %s", values[1], values[2])
			}
		}
	})
	if found < 15 {
		t.Errorf("found %d expressions in the dashboard, want more: the test does not see them", found)
	}
	promtool(t, text)
}

// eachString calls f for each string in a JSON value, with its key.
func eachString(v any, f func(key, value string)) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if text, ok := value.(string); ok {
				f(key, text)
			}
			eachString(value, f)
		}
	case []any:
		for _, value := range v {
			eachString(value, f)
		}
	}
}

// queried are the metrics that expressions may use.
type queried struct{ metrics map[string]metric }

// labelsOf returns the labels of a series. Its name may be a part of a histogram or summary.
func (q queried) labelsOf(name string) ([]string, bool) {
	if name == "up" {
		return nil, true
	}
	if m, ok := q.metrics[name]; ok && m.kind != "histogram" && m.kind != "summary" {
		return m.labels, true
	}
	for suffix, label := range map[string]string{"_bucket": "le", "_sum": "", "_count": ""} {
		base, cut := strings.CutSuffix(name, suffix)
		if m, ok := q.metrics[base]; cut && ok && (m.kind == "histogram" || m.kind == "summary" && label == "") {
			return append(slices.Clone(m.labels), label), true
		}
	}
	return nil, false
}

var (
	quotedText = regexp.MustCompile(`"[^"]*"`)
	ranges     = regexp.MustCompile(`\[[^]]*\]|\boffset \w+`)
	selector   = regexp.MustCompile(`([a-zA-Z_:][a-zA-Z0-9_:]*)\s*\{([^}]*)\}`)
	matcher    = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)`)
	grouping   = regexp.MustCompile(`\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)`)
	word       = regexp.MustCompile(`([a-zA-Z_:][a-zA-Z0-9_:]*)(\s*\()?`)
	keywords   = []string{"and", "or", "unless", "bool", "by", "without", "on", "ignoring", "Inf", "NaN"}
)

// check makes sure that each metric and label in an expression exists, and returns the labels. It
// splits the expression into words. promtool checks its form.
func (q queried) check(t *testing.T, where, expr string) (labels []string) {
	t.Helper()
	labels = []string{"job", "instance"}
	rest := ranges.ReplaceAllString(quotedText.ReplaceAllString(expr, ""), "")
	metrics := 0
	for _, match := range selector.FindAllStringSubmatch(rest, -1) {
		of, ok := q.labelsOf(match[1])
		for _, label := range matcher.FindAllStringSubmatch(match[2], -1) {
			if ok && label[1] != "job" && label[1] != "instance" && !slices.Contains(of, label[1]) {
				t.Errorf("%s: %s has no label %s, but %q", where, match[1], label[1], of)
			}
		}
	}
	rest = selector.ReplaceAllString(rest, "$1 ")
	groups := grouping.FindAllStringSubmatch(rest, -1)
	rest = grouping.ReplaceAllString(rest, " ")
	for _, match := range word.FindAllStringSubmatch(rest, -1) {
		if match[2] != "" || slices.Contains(keywords, match[1]) {
			continue
		}
		of, ok := q.labelsOf(match[1])
		if !ok {
			t.Errorf("%s: the proxy has no metric %s (%s)", where, match[1], expr)
		}
		metrics++
		labels = append(labels, of...)
	}
	for _, group := range groups {
		for label := range strings.SplitSeq(group[1], ",") {
			if label = strings.TrimSpace(label); label != "" && !slices.Contains(labels, label) {
				t.Errorf("%s: no metric has the label %s (%s)", where, label, expr)
			}
		}
	}
	if metrics == 0 {
		t.Errorf("%s: %s names no metric", where, expr)
	}
	return labels
}

// findPromtool returns "" if it is not installed.
func findPromtool() string {
	tool := filepath.Join("..", "..", ".servers", "promtool")
	if _, err := os.Stat(tool); err == nil {
		return tool
	}
	tool, _ = exec.LookPath("promtool")
	return tool
}

// promtool checks the alerts, their tests and a scrape with Prometheus's own tool, if that is
// installed.
func promtool(t *testing.T, metrics string) {
	t.Helper()
	tool := findPromtool()
	if tool == "" {
		t.Skip("promtool's checks were left out: it is not in PATH, nor in .servers (scripts/promtool.sh puts it there)")
	}
	for _, args := range [][]string{
		{"check", "rules", "../../deploy/prometheus/alerts.yml"},
		{"check", "config", "../../deploy/prometheus/prometheus.yml"}, // and that it finds them
		{"check", "metrics"},
		{"test", "rules", "testdata/alerts_test.yml"},
	} {
		cmd := exec.Command(tool, args...)
		cmd.Stdin = strings.NewReader(metrics)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Run(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out.String())
		}
	}
}
