package conf_test

import (
	"os"
	"strings"
	"testing"

	"seqproxy/conf/docs"
)

// The test also fails for every key without a comment, the tag reload or a place on the page.
func TestThePageIsUpToDate(t *testing.T) {
	want, err := docs.Page(".")
	if err != nil {
		t.Fatal(err)
	}
	if len(want) > 20_000 {
		t.Errorf("docs/config.md has %d bytes, want 20,000 at most", len(want))
	}
	got, err := os.ReadFile("../docs/config.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) == string(want) {
		return
	}
	is, shouldBe := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range shouldBe {
		if i >= len(is) || is[i] != shouldBe[i] {
			t.Fatalf("docs/config.md is not up to date; run: go generate ./conf\nline %d should be %s", i+1, shouldBe[i])
		}
	}
	t.Fatal("docs/config.md is not up to date; run: go generate ./conf")
}
