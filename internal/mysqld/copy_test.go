package mysqld

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestCopiedFilesAreEqualAndSparse(t *testing.T) {
	content := make([]byte, 1<<20+10)
	content[300_000], content[len(content)-1] = 1, 2
	for name, content := range map[string][]byte{
		"empty":          {},
		"short":          []byte("abc"),
		"all zeros":      make([]byte, 200_000),
		"zeros and data": content,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
			if err := os.WriteFile(from, content, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := copyFile(from, to); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(to)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, content) {
				t.Errorf("got %d bytes that differ from the original's %d", len(got), len(content))
			}
		})
	}
}
