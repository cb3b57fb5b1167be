package embedded_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/hostler-proxy/hostler/internal/store/embedded"
)

// FuzzRestore: whatever an export holds, an import makes a store that gives the
// same back, or says no and leaves nothing.
func FuzzRestore(f *testing.F) {
	head := `{"hostler_export":1,"schema":1,"secrets":true}` + "\n"
	f.Add([]byte(head + `{"rows":0}` + "\n"))
	f.Add([]byte(head + `{"table":"meta","row":{"key":"id_key","value":"AAAA"}}` + "\n" + `{"rows":1}`))
	f.Add([]byte(head + `{"table":"session","row":{"pool":1,"key":"s","proxy":1,"proxy_id":"","child":"","last_used":1,"gone":0}}` + "\n" + `{"rows":1}`))
	f.Add([]byte(head + `{"table":"token","row":{"name":null,"role":"","hash":"*","created":1e9}}` + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		to := filepath.Join(t.TempDir(), "to.db")
		if _, err := embedded.Restore(t.Context(), options(to), bytes.NewReader(text), quiet); err != nil {
			if left, _ := filepath.Glob(to + "*"); len(left) != 1 {
				t.Fatalf("left behind: %v", left)
			}
			return
		}
		first := export(t, to, true)
		again := filepath.Join(t.TempDir(), "again.db")
		if _, err := embedded.Restore(t.Context(), options(again), bytes.NewReader([]byte(first)), quiet); err != nil {
			t.Fatalf("its own export is refused: %v\n%s", err, first)
		}
		if second := export(t, again, true); second != first {
			t.Fatalf("%s\nbecame\n%s", first, second)
		}
	})
}
