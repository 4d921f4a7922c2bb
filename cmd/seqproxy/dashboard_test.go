package main

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// dashboard is the part of deploy/grafana/seqproxy.json that the test reads.
type dashboard struct {
	UID, Title    string
	SchemaVersion int
	Templating    struct {
		List []struct {
			Name, Type, Query string
			Datasource        struct{ Type, UID string }
		}
	}
	Panels []struct {
		ID          int
		Type, Title string
		GridPos     struct{ H, W, X, Y int }
		Datasource  struct{ Type, UID string }
		FieldConfig struct{ Defaults struct{ Unit string } }
		Targets     []struct {
			RefID, Expr, LegendFormat string
			Datasource                struct{ Type, UID string }
		}
	}
}

// grafanaUnits are Grafana's units for metrics of the proxy.
var grafanaUnits = []string{"bool_yes_no", "none", "short", "percentunit", "bytes", "Bps", "ops", "s"}

// unitOf gives the unit of panels by their expressions. The first match counts.
var unitOf = []struct {
	expr *regexp.Regexp
	unit string
}{
	{regexp.MustCompile(`_bytes_total\{`), "Bps"},
	{regexp.MustCompile(`_bytes\{`), "bytes"},
	{regexp.MustCompile(`_cpu_seconds_total\{|_ratio\{|^process_open_fds`), "percentunit"},
	{regexp.MustCompile(`_seconds(_sum|_bucket)?\{`), "s"},
	{regexp.MustCompile(`increase\(`), "short"},
	{regexp.MustCompile(`rate\(`), "ops"},
	{regexp.MustCompile(`seqproxy_(ready|config_last_reload_successful|node_up|sequence_server_up)\{`), "bool_yes_no"},
}

// TestTheDashboardShowsWhatIsTold checks the form of the dashboard, and that each panel has data
// for a proxy with all metrics.
func TestTheDashboardShowsWhatIsTold(t *testing.T) {
	_, text := scrape(t, eventful(t))
	var d dashboard
	if err := json.Unmarshal([]byte(repositoryFile(t, "deploy/grafana/seqproxy.json")), &d); err != nil {
		t.Fatal(err)
	}
	if d.UID == "" || d.Title == "" || d.SchemaVersion < 36 {
		t.Errorf("uid %q, title %q, schemaVersion %d", d.UID, d.Title, d.SchemaVersion)
	}
	variables := []string{"$__rate_interval"}
	for i, v := range d.Templating.List {
		variables = append(variables, "$"+v.Name)
		switch {
		case v.Type == "datasource" && v.Query == "prometheus" && i == 0:
		case v.Type == "query" && v.Datasource.UID == "${datasource}" && v.Datasource.Type == "prometheus":
		default:
			t.Errorf("the variable %s is %+v", v.Name, v)
		}
	}
	ids, titles, taken := make(map[int]bool), make(map[string]bool), make(map[[2]int]string)
	rules := "groups:\n- name: dashboard\n  rules:\n"
	for _, p := range d.Panels {
		if p.ID <= 0 || ids[p.ID] || p.Title == "" || titles[p.Type+p.Title] {
			t.Errorf("panel %d, %q: another panel has its id or title", p.ID, p.Title)
		}
		ids[p.ID], titles[p.Type+p.Title] = true, true
		at := p.GridPos
		if at.W <= 0 || at.H <= 0 || at.X < 0 || at.X+at.W > 24 {
			t.Errorf("panel %q is at %+v", p.Title, at)
		}
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("panels %q and %q are at one place", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			if len(p.Targets) > 0 {
				t.Errorf("the row %q has targets", p.Title)
			}
			continue
		}
		if len(p.Targets) == 0 || p.Datasource.UID != "${datasource}" || !slices.Contains(grafanaUnits, p.FieldConfig.Defaults.Unit) {
			t.Errorf("panel %q: %d targets of %q, in %q", p.Title, len(p.Targets), p.Datasource.UID, p.FieldConfig.Defaults.Unit)
		}
		refs := make(map[string]bool)
		for _, target := range p.Targets {
			if target.RefID == "" || refs[target.RefID] || target.Datasource.UID != "${datasource}" || target.LegendFormat == "" {
				t.Errorf("panel %q: target %+v", p.Title, target)
			}
			refs[target.RefID] = true
			for _, used := range regexp.MustCompile(`\$\w+`).FindAllString(target.Expr, -1) {
				if !slices.Contains(variables, used) {
					t.Errorf("panel %q: there is no variable %s", p.Title, used)
				}
			}
			if !hasSeries(text, target.Expr) {
				t.Errorf("panel %q never shows anything: no series is that of %s", p.Title, target.Expr)
			}
			for _, u := range unitOf {
				if !u.expr.MatchString(target.Expr) {
					continue
				}
				if p.FieldConfig.Defaults.Unit != u.unit {
					t.Errorf("panel %q is in %q, want %q for %s", p.Title, p.FieldConfig.Defaults.Unit, u.unit, target.Expr)
				}
				break
			}
			rules += fmt.Sprintf("  - record: panel:%d:%s\n    expr: %q\n", p.ID, strings.ToLower(target.RefID), regexp.MustCompile(`\$\w+`).ReplaceAllString(target.Expr, "5m"))
		}
	}
	if len(ids) < 20 {
		t.Errorf("found %d panels, want more: the test does not see them", len(ids))
	}
	tool := findPromtool()
	if tool == "" {
		t.Skip("the syntax of expressions was not checked: promtool is not installed")
	}
	if out, err := exec.CommandContext(t.Context(), tool, "check", "rules", write(t, "dashboard.yml", rules)).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// hasSeries reports whether each part of an expression selects a series of told. Labels from
// variables, and those that Prometheus adds, do not count.
func hasSeries(metrics, expr string) bool {
	for _, match := range regexp.MustCompile(`([a-z_:]+)\{([^}]*)\}`).FindAllStringSubmatch(expr, -1) {
		found := false
		for line := range strings.SplitSeq(metrics, "\n") {
			if rest, ok := strings.CutPrefix(line, match[1]); !ok || rest == "" || rest[0] != '{' && rest[0] != ' ' {
				continue
			}
			fits := true
			for _, m := range regexp.MustCompile(`(\w+)(!=|=~|=)"([^"]*)"`).FindAllStringSubmatch(match[2], -1) {
				has := strings.Contains(line, m[1]+`="`+m[3]+`"`)
				fits = fits && (strings.HasPrefix(m[3], "$") || has == (m[2] == "="))
			}
			found = found || fits
		}
		if !found {
			return false
		}
	}
	return true
}
