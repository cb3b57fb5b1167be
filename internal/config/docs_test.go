package config_test

import (
	"os"
	"strings"
	"testing"

	"github.com/hostler-proxy/hostler/internal/config"
)

// TestDocumentedSourcesAreGood reads the example of docs/sources.md.
func TestDocumentedSourcesAreGood(t *testing.T) {
	raw, err := os.ReadFile("../../docs/sources.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for rest := string(raw); ; {
		_, block, ok := strings.Cut(rest, "```yaml\n")
		if !ok {
			break
		}
		block, rest, _ = strings.Cut(block, "```")
		file, err := config.Parse([]byte(block))
		if err != nil {
			t.Errorf("%v\n%s", err, block)
			continue
		}
		n += len(file.Sources)
	}
	if n != 4 {
		t.Errorf("%d sources were read: the test looks at nothing", n)
	}
}
