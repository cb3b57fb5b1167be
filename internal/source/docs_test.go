package source_test

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/hostler-proxy/hostler/internal/source"
)

// TestPresetsAreDocumented compares the table of docs/sources.md with what the
// presets make.
func TestPresetsAreDocumented(t *testing.T) {
	raw, err := os.ReadFile("../../docs/sources.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	words := map[string]string{"U": "USER", "P": "PASS"}
	for _, name := range source.PresetNames() {
		settings := map[string]string{"preset": name, "region": "xx", "params.username": "${U}"}
		for _, p := range []struct{ path, value string }{
			{"params.password", "${P}"}, {"params.zone", "ZONE"}, {"params.host", "HOST"}, {"params.sticky", "7m"},
		} {
			settings[p.path] = p.value
			_, err := source.Parse("a", settings)
			if err != nil && !strings.Contains(err.Error(), "needs it") || p.path == "params.host" && name != "netnut" {
				delete(settings, p.path) // this preset does not take it, or has its own
			}
		}
		s, err := source.Parse("a", settings)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		list, err := s.Templates(func(v string) (string, bool) { return words[v], true })
		if err != nil {
			t.Fatal(err)
		}
		p := list[0].Proxy
		username, password := strings.ReplaceAll(p.Username, "-7", "-MIN"), strings.ReplaceAll(p.Password.Reveal(), "-7m", "-MINm")
		shown := "`" + username + "` : `" + password + "`"
		if password == "" {
			shown = "`" + username + "` : (empty)"
		}
		row := fmt.Sprintf("| `%s` | %s | %s |", name, net.JoinHostPort(p.Host, strconv.Itoa(int(p.Port))), shown)
		if !strings.Contains(text, row) {
			t.Errorf("docs/sources.md has no row that begins with\n%s", row)
		}
	}
}
