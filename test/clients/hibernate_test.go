package clients_test

import (
	"context"
	"net"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"seqproxy/test/mysqltest"
)

// hibernateJars are Hibernate as Debian's libhibernate3-java has it, and what it needs.
var hibernateJars = func() string {
	var jars []string
	for _, name := range []string{
		"hibernate3", "hibernate-commons-annotations", "geronimo-jpa_2.0_spec", "geronimo-jta-1.2-spec", "dom4j", "antlr", "commons-collections3",
		"slf4j-api", "slf4j-nop",
	} {
		jars = append(jars, "/usr/share/java/"+name+".jar")
	}
	return strings.Join(append(jars, connectorJar), ":")
}()

// Hibernate makes tables and sequences, validates its schema, and makes ids by its pooled optimizer
// as on a direct connection to MariaDB, which has sequences itself.
func TestHibernateMakesTheSameIDs(t *testing.T) {
	if what := missing("Hibernate", "javac", "hibernate/Hibernate.java"); what != "" {
		lacking(t, what)
	}
	second := mysqltest.Start(t)
	p := start(t)
	p.server.OnMariaDB(t, "sequences to compare with")
	// Hibernate looks for classes by name, which a source file that is run directly does not
	// provide.
	classes := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "javac", "-cp", hibernateJars, "-d", classes, "testdata/hibernate/Hibernate.java").CombinedOutput(); err != nil {
		t.Fatalf("javac: %v\n%s", err, out)
	}
	const schema = "hibernate"
	hibernate := func(addr string, more ...string) transcript {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 120*time.Second)
		defer cancel()
		out, err := run(ctx, t, p, target{}, "", append([]string{
			"java", "-XX:TieredStopAtLevel=1", "-cp", hibernateJars + ":" + classes, "Hibernate",
			host, port, user, password, schema,
		}, more...)...)
		if err != nil {
			t.Errorf("%s: %v\n%s", addr, err, tail(string(out)))
			return transcript{}
		}
		transcript, err := parse(out)
		if err != nil {
			t.Error(err)
		}
		return transcript
	}
	var transcripts [2]transcript
	for i, addr := range [...]string{p.server.Addr(), p.proxy} {
		p.empty(t, schema, nil)
		if transcripts[i] = hibernate(addr); t.Failed() {
			return
		}
	}
	direct, through := transcripts[0], transcripts[1]
	t.Logf("through the proxy: %.500s", text(through))
	if got, want := text(through), text(direct); got != want {
		t.Errorf("through the proxy: %s", difference(got, want))
	}
	for step, want := range map[string]string{"before": "Missing", "valid": "yes", "pooled round0": "] true", "pooled round1": "] true", "low round0": "] true", "low round1": "] true", "made again": "[]"} {
		if got, _ := through.value(step).(string); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %s", step, got, want)
		}
	}

	// Two sequence servers divide the numbers, and two applications make ids at the same time. As
	// the page says, the client with the first number of "pooled" needs the second, too.
	db := p.open(t, p.proxy, schema, nil)
	for _, text := range []string{"SEQPROXY ADD SEQUENCE SERVER '" + second.Addr() + "' WITH DIRECT WRITERS STOPPED", "DO NEXTVAL(pooled_seq)"} {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	var group sync.WaitGroup
	titles := []string{"a", "b"}
	made := make([]transcript, len(titles))
	for i, title := range titles {
		group.Go(func() { made[i] = hibernate(p.proxy, title) })
	}
	group.Wait()
	for _, table := range []string{"pooled", "low", "single"} {
		ids := make(map[string]bool)
		for i, title := range titles {
			list, _ := made[i].value(table + " " + title).(string)
			found := regexp.MustCompile(`\d+[,\]]`).FindAllString(list, -1)
			if len(found) < 3 || table != "single" && (len(found) != 200 || !strings.HasSuffix(list, "] true")) {
				t.Errorf("%s over two servers: %q", table, list)
			}
			for _, id := range found {
				if id = strings.Trim(id, ",]"); ids[id] {
					t.Errorf("%s over two servers: the id %s was made twice", table, id)
				}
				ids[id] = true
			}
		}
	}
	var numbers uint64
	if err := second.DB(t, "seqproxy").QueryRow("SELECT id FROM sequence WHERE name = 'low_seq'").Scan(&numbers); err != nil || numbers == 0 {
		t.Errorf("the second server stands at %d, %v", numbers, err)
	}
}
