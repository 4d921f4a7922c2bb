package main

import (
	"bytes"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"seqproxy/conf"
	"seqproxy/internal/inspect"
	"seqproxy/internal/mysqld"
	"seqproxy/test/mysqltest"
)

const deploy = "../../deploy/"

// composeFile is the part of deploy/compose.yaml that the tests read.
type composeFile struct {
	Services map[string]struct {
		Image string
		Build struct{ Context, Dockerfile string }
		// Environment is a map here. A list would also be valid.
		Environment map[string]string
		Volumes     []string
		Ports       []string
		DependsOn   []string `yaml:"depends_on"`
		ReadOnly    bool     `yaml:"read_only"`
		CapDrop     []string `yaml:"cap_drop"`
		SecurityOpt []string `yaml:"security_opt"`
		StopGrace   string   `yaml:"stop_grace_period"`
		Command     []string
		Ulimits     struct{ NoFile int }
		Healthcheck struct{ Test []string }
	}
	Volumes map[string]any
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// composePasswords are the variables that deploy/compose.yaml passes to its containers.
var composePasswords = []string{"ROOT_PASSWORD", "SEQUENCE_PASSWORD", "APP_PASSWORD"}

func loadComposed(t *testing.T) *conf.Config {
	t.Helper()
	for _, name := range composePasswords {
		t.Setenv(name, "of-"+name)
	}
	cfg, err := conf.Load(deploy + "compose/seqproxy.toml")
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestWhatComposeMountsIsThereAndFitsTogether(t *testing.T) {
	var c composeFile
	readYAML(t, deploy+"compose.yaml", &c)
	mounted := make(map[string]map[string]string) // by service and place in the container
	for name, s := range c.Services {
		mounted[name] = make(map[string]string)
		if s.Image == "" {
			t.Errorf("%s has no image", name)
		}
		if strings.Contains(s.Image, "@") {
			t.Errorf("%s: the image %s is not named by name and version alone", name, s.Image)
		}
		if s.Build.Context != "" {
			file := filepath.Join(deploy, s.Build.Context, s.Build.Dockerfile)
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s is built of %v", name, err)
			}
		}
		for _, v := range s.Volumes {
			parts := strings.Split(v, ":")
			if len(parts) < 2 {
				t.Errorf("%s: volume %q", name, v)
				continue
			}
			mounted[name][parts[1]] = filepath.Join(deploy, parts[0])
			if !strings.HasPrefix(parts[0], ".") {
				if _, ok := c.Volumes[parts[0]]; !ok {
					t.Errorf("%s: no volume %q", name, parts[0])
				}
				continue
			}
			if _, err := os.Stat(filepath.Join(deploy, parts[0])); err != nil {
				t.Errorf("%s mounts %v", name, err)
			}
			if parts[len(parts)-1] != "ro" {
				t.Errorf("%s may write to %s", name, parts[0])
			}
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s opens %s to everybody", name, p)
			}
		}
		for _, other := range s.DependsOn {
			if _, ok := c.Services[other]; !ok {
				t.Errorf("%s depends on %s, which is no service", name, other)
			}
		}
	}
	proxy := c.Services["seqproxy"]
	for _, name := range composePasswords {
		if got, want := proxy.Environment[name] != "", name != "ROOT_PASSWORD"; got != want {
			t.Errorf("the proxy's container has %s: %v, want %v", name, got, want)
		}
	}
	if !proxy.ReadOnly {
		t.Error("the proxy's container is not read only")
	}
	if !slices.Equal(proxy.CapDrop, []string{"ALL"}) || !slices.Contains(proxy.SecurityOpt, "no-new-privileges:true") {
		t.Errorf("the proxy's container keeps rights: without %q, with %q", proxy.CapDrop, proxy.SecurityOpt)
	}
	cfg := loadComposed(t)
	if least := filesFor(cfg.MaxConnections, len(cfg.Shards)); proxy.Ulimits.NoFile < least {
		t.Errorf("the proxy's container may have %d files, max_connections clients need %d", proxy.Ulimits.NoFile, least)
	}
	wait, err := time.ParseDuration(proxy.StopGrace)
	if least := cfg.Drain.Grace.D() + cfg.Drain.Timeout.D() + 2*giveBackTimeout; err != nil || wait < least {
		t.Errorf("the proxy is killed after %v (%v), and may need %v to stop", wait, err, least)
	}
	var open []string // of the container
	for _, address := range []string{cfg.Listen, cfg.Admin.Listen, cfg.HTTP.Listen} {
		host, port, err := net.SplitHostPort(address)
		if err != nil || host != "0.0.0.0" {
			t.Errorf("in its container the proxy listens on %s, where others cannot come to (%v)", address, err)
		}
		open = append(open, "127.0.0.1:"+port+":"+port)
	}
	if !slices.Equal(proxy.Ports, open) {
		t.Errorf("got the proxy's ports %q, want those that it listens on, %q", proxy.Ports, open)
	}
	if test := proxy.Healthcheck.Test; len(test) > 0 {
		t.Errorf("the proxy's health is %q, and not what the Dockerfile says and a test runs", test)
	}
	for _, db := range []string{"db0", "db1"} {
		if test := c.Services[db].Healthcheck.Test; len(test) < 2 || test[0] != "CMD" || test[1] != "healthcheck.sh" {
			t.Errorf("the health of %s is %q, and not the script of its image", db, test)
		}
	}
	for _, server := range cfg.Sequence.Servers {
		isService(t, &c, string(server.Address))
	}
	for _, shard := range cfg.Shards {
		for _, address := range shard.Addresses() {
			isService(t, &c, string(address))
		}
	}
	if mounted["seqproxy"][cfg.Sequence.StateDir] == "" {
		t.Errorf("state_dir %s is no volume", cfg.Sequence.StateDir)
	}

	var prometheus struct {
		RuleFiles     []string `yaml:"rule_files"`
		ScrapeConfigs []struct {
			StaticConfigs []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	readYAML(t, deploy+"prometheus/prometheus.yml", &prometheus)
	if rules, err := filepath.Glob(deploy + "prometheus/alerts*.yml"); err != nil || !slices.Contains(prometheus.RuleFiles, "alerts*.yml") {
		t.Errorf("got the rules %q of Prometheus, want %q (%v)", prometheus.RuleFiles, rules, err)
	}
	if len(prometheus.ScrapeConfigs) != 1 || len(prometheus.ScrapeConfigs[0].StaticConfigs) != 1 {
		t.Fatalf("Prometheus scrapes %+v", prometheus.ScrapeConfigs)
	}
	_, httpPort, err := net.SplitHostPort(cfg.HTTP.Listen)
	if got := prometheus.ScrapeConfigs[0].StaticConfigs[0].Targets; err != nil || len(got) != 1 || got[0] != "seqproxy:"+httpPort {
		t.Errorf("Prometheus scrapes %q, the proxy is at seqproxy:%s", got, httpPort)
	}
	var sources struct {
		Datasources []struct{ URL, Type string }
	}
	provisioning := mounted["grafana"]["/etc/grafana/provisioning"]
	readYAML(t, provisioning+"/datasources/prometheus.yml", &sources)
	if len(sources.Datasources) != 1 {
		t.Fatalf("Grafana has the sources %+v", sources)
	}
	u, err := url.Parse(sources.Datasources[0].URL)
	if err != nil {
		t.Fatal(err)
	}
	isService(t, &c, u.Host)
	var dashboards struct {
		Providers []struct {
			Options struct{ Path string }
		}
	}
	readYAML(t, provisioning+"/dashboards/seqproxy.yml", &dashboards)
	if len(dashboards.Providers) != 1 || mounted["grafana"][dashboards.Providers[0].Options.Path] == "" {
		t.Errorf("Grafana looks for dashboards in %+v, where nothing is mounted", dashboards.Providers)
	}
}

// filesFor returns how many files a proxy needs open: a session keeps its client's connection and
// one to each shard that it has used.
func filesFor(connections, shards int) int { return connections*(1+shards) + 1000 }

// isService checks that an address belongs to a service.
func isService(t *testing.T, c *composeFile, address string) {
	t.Helper()
	host, _, err := net.SplitHostPort(address)
	if _, ok := c.Services[host]; err != nil || !ok {
		t.Errorf("%s is no service (%v)", address, err)
	}
}

// TestTheConfigurationOfComposeServes uses two real servers in place of the containers, prepared by
// the same script.
func TestTheConfigurationOfComposeServes(t *testing.T) {
	cfg := loadComposed(t)
	text, err := os.ReadFile(deploy + "compose/seqproxy.toml")
	if err != nil {
		t.Fatal(err)
	}
	program, err := mysqld.FindClient()
	if err != nil {
		t.Fatal(err)
	}
	replace := []string{cfg.Listen, "127.0.0.1:0", cfg.Admin.Listen, "127.0.0.1:0", cfg.HTTP.Listen, "127.0.0.1:0", cfg.Sequence.StateDir, t.TempDir(), `format = "json"`, ""}
	var c composeFile
	readYAML(t, deploy+"compose.yaml", &c)
	for i := range 2 {
		// as its container is
		s := mysqltest.StartUnsynced(t, c.Services[fmt.Sprintf("db%d", i)].Command...)
		s.Exec(t, "ALTER USER root@localhost IDENTIFIED BY 'of-ROOT_PASSWORD'")
		t.Cleanup(func() { // its helpers know none
			login := exec.Command(program, "--no-defaults", "--socket="+s.Socket(), "--user=root", "--password=of-ROOT_PASSWORD", "-e", "ALTER USER root@localhost IDENTIFIED BY ''")
			if out, err := login.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
		bin := t.TempDir()
		wrapper := fmt.Sprintf("#!/bin/sh\nexec %q --no-defaults --socket=%q \"$@\"\n", program, s.Socket())
		if err := os.WriteFile(bin+"/mariadb", []byte(wrapper), 0o700); err != nil { //nolint:gosec // it is run
			t.Fatal(err)
		}
		prepare := exec.Command("sh", deploy+"compose/init/accounts.sh")
		prepare.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), fmt.Sprintf("HOSTNAME=db%d", i), "MARIADB_ROOT_PASSWORD=of-ROOT_PASSWORD")
		if out, err := prepare.CombinedOutput(); err != nil {
			t.Fatalf("accounts.sh: %v: %s", err, out)
		}
		replace = append(replace, fmt.Sprintf("db%d:3306", i), s.Addr())
	}
	file := write(t, "seqproxy.toml", strings.NewReplacer(replace...).Replace(string(text)))
	r, err := checks(t, file)
	if err != nil {
		t.Errorf("check says %v:\n%s", err, r.text())
	}
	for _, f := range r.Findings {
		if f.Level != inspect.OK && f.Check != "clock" && f.Check != "version" {
			t.Errorf("check says %+v", f)
		}
	}
	p := beginIn(t, []string{"SEQUENCE_PASSWORD=of-SEQUENCE_PASSWORD", "APP_PASSWORD=of-APP_PASSWORD"}, "-config", file)
	address := p.address()
	head, err := os.ReadFile(deploy + "compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	first := regexp.MustCompile(`(?m)^#   mariadb -h 127\.0\.0\.1 -P 4306 -u app -papp-password --skip-ssl (\w+) -e "(.+)"$`).FindStringSubmatch(string(head))
	if first == nil {
		t.Fatal("the head of compose.yaml has no first command")
	}
	for range 2 { // repeating it does no harm
		got := query(t, address, "app", "of-APP_PASSWORD", first[2], append(plain(t), first[1])...)
		if n, err := strconv.Atoi(got); err != nil || n < 1 {
			t.Errorf("the command in the head of compose.yaml: got %q, want a number", got)
		}
	}
	for _, album := range []string{"album0", "album1"} {
		got := query(t, address, "app", "of-APP_PASSWORD", "INSERT INTO photos VALUES (NEXTVAL('photos'), 'sea'); SELECT COUNT(*) FROM photos",
			append(plain(t), album)...)
		if got != "1" {
			t.Errorf("%s: got %q, want one row", album, got)
		}
	}
	p.signal(syscall.SIGTERM)
	p.end(0)
}

// TestWhatDoesNotComeFromComposeIsRight: a container that is run by hand has time to stop, and a
// rotation without a log file, as where the log is in the journal, is no error.
func TestWhatDoesNotComeFromComposeIsRight(t *testing.T) {
	var wait time.Duration
	if said := regexp.MustCompile(`\n#   docker run .*--stop-timeout (\d+) `).FindStringSubmatch(repositoryFile(t, "Dockerfile")); said != nil {
		seconds, _ := strconv.Atoi(said[1])
		wait = time.Duration(seconds) * time.Second
	}
	drain := conf.Default().Drain
	if least := drain.Grace.D() + drain.Timeout.D() + 2*giveBackTimeout; wait < least {
		t.Errorf("the container of the Dockerfile's head is killed after %v, and may need %v to stop", wait, least)
	}
	if !strings.Contains(repositoryFile(t, "deploy/logrotate/seqproxy"), "\n    missingok\n") {
		t.Error("logrotate fails every day without a log file")
	}
}

// TestTheUnitIsRight lets systemd check the unit, if it is installed. Another program stands for
// the unit's own.
func TestTheUnitIsRight(t *testing.T) {
	text, err := os.ReadFile(deploy + "systemd/seqproxy.service")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\nType=notify\n", "\nExecStart=/usr/bin/seqproxy -config /etc/seqproxy/seqproxy.toml\n", "\nExecReload=/bin/kill -HUP $MAINPID\n", "\nRestart=on-failure\n", "\nStateDirectory=seqproxy\n",
		// the log is 0640, for the group of its directory
		"\nStateDirectoryMode=0700\n", "\nLogsDirectoryMode=0750\n", "\nUMask=0027\n",
		"\nUser=seqproxy\n", "\nNoNewPrivileges=yes\n", "\nProtectSystem=strict\n", "\nCapabilityBoundingSet=\n",
	} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("the unit has no line %q", strings.TrimSpace(want))
		}
	}
	var files int
	for line := range strings.Lines(string(text)) {
		if _, err := fmt.Sscanf(line, "LimitNOFILE=%d", &files); err == nil {
			break
		}
	}
	var shards int // as the comment says
	_, said, _ := bytes.Cut(text, []byte("\n# That is enough for "))
	if _, err := fmt.Sscanf(string(said), "%d shards with the default of max_connections.", &shards); err != nil {
		t.Errorf("the unit does not say for how many shards LimitNOFILE is: %v", err)
	}
	if least := filesFor(conf.Default().MaxConnections, shards); files < least {
		t.Errorf("LimitNOFILE is %d, max_connections clients of %d shards need %d", files, shards, least)
	}
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "seqproxy.service")
	if err := os.WriteFile(unit, bytes.ReplaceAll(text, []byte("/usr/bin/seqproxy"), []byte(exe)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(tool, "verify", "--man=no", "--recursive-errors=no", unit).CombinedOutput(); err != nil || strings.Contains(string(out), path.Base(unit)) {
		t.Errorf("systemd-analyze verify: %v: %s", err, out)
	}
	// 2.0 of 10; 0 would be no exposure at all. Older versions cannot check a file.
	if out, err := exec.Command(tool, "security", "--no-pager", "--offline=true", "--threshold=20", unit).CombinedOutput(); err != nil && !strings.Contains(string(out), "option") {
		t.Errorf("systemd-analyze security: %v: %s", err, out)
	}
}

// TestTheAccountOfTheUnitIsMade lets systemd create the account in a separate root directory.
func TestTheAccountOfTheUnitIsMade(t *testing.T) {
	tool, err := exec.LookPath("systemd-sysusers")
	if err != nil {
		t.Skip("systemd-sysusers is not installed")
	}
	if os.Geteuid() != 0 {
		t.Skip("only root makes accounts")
	}
	accounts, err := filepath.Abs(deploy + "systemd/seqproxy.sysusers")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := os.Mkdir(root+"/etc", 0o755); err != nil { //nolint:gosec // as a system's
		t.Fatal(err)
	}
	if out, err := exec.Command(tool, "--root="+root, accounts).CombinedOutput(); err != nil {
		t.Fatalf("systemd-sysusers: %v: %s", err, out)
	}
	made, err := os.ReadFile(root + "/etc/passwd")
	if want := regexp.MustCompile(`(?m)^seqproxy:x:\d+:\d+:seqproxy:/var/lib/seqproxy:/\S*nologin$`); err != nil || !want.Match(made) {
		t.Errorf("got %q, %v, want an account that nobody logs in to", made, err)
	}
}
