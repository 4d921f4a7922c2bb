package clients_test

import (
	"context"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"
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
	p := start(t)
	p.server.OnMariaDB(t, "sequences to compare with")
	// Hibernate looks for classes by name, which those of a source file that is run have not.
	classes := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "javac", "-cp", hibernateJars, "-d", classes, "testdata/hibernate/Hibernate.java").CombinedOutput(); err != nil {
		t.Fatalf("javac: %v\n%s", err, out)
	}
	const schema = "hibernate"
	var told [2]transcript
	for i, addr := range [...]string{p.server.Addr(), p.proxy} {
		p.empty(t, schema, nil)
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 120*time.Second)
		defer cancel()
		out, err := run(ctx, t, p, target{}, "", "java", "-XX:TieredStopAtLevel=1", "-cp", hibernateJars+":"+classes, "Hibernate",
			host, port, user, password, schema)
		if err != nil {
			t.Fatalf("%s: %v\n%s", addr, err, tail(string(out)))
		}
		if told[i], err = parse(out); err != nil {
			t.Fatal(err)
		}
	}
	direct, through := told[0], told[1]
	t.Logf("through the proxy: %.500s", text(through))
	if got, want := text(through), text(direct); got != want {
		t.Errorf("through the proxy: %s", difference(got, want))
	}
	for step, want := range map[string]string{"before": "Missing", "valid": "yes", "pooled 0": "] true", "pooled 1": "] true", "made again": "[]"} {
		if got, _ := through.value(step).(string); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %s", step, got, want)
		}
	}
}
