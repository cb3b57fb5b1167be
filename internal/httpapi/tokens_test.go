package httpapi

import (
	"testing"

	"github.com/hostler-proxy/hostler/internal/store"
)

// TestMayRevoke: a revocation never opens the door, and shuts all operators out
// only when told to.
func TestMayRevoke(t *testing.T) {
	op1, op2 := store.Token{Name: "op1", Role: "operator"}, store.Token{Name: "op2", Role: "operator"}
	w := store.Token{Name: "w", Role: "worker"}
	for _, c := range []struct {
		name           string
		list           []store.Token
		revoke         string
		force, exposed bool
		refused        bool
	}{
		{"a worker's", []store.Token{op1, w}, "w", false, true, false},
		{"one of two operators'", []store.Token{op1, op2}, "op1", false, true, false},
		{"the only operator's, workers remain", []store.Token{op1, w}, "op1", false, false, true},
		{"the same, forced", []store.Token{op1, w}, "op1", true, true, false},
		{"the only token, on loopback", []store.Token{op1}, "op1", false, false, false},
		{"the only token, exposed", []store.Token{op1}, "op1", false, true, true},
		{"the same, forced", []store.Token{op1}, "op1", true, true, true},
		{"the only token is a worker's, exposed", []store.Token{w}, "w", true, true, true},
		{"unknown", []store.Token{op1}, "nobody", false, true, false}, // the store says so
	} {
		if err := mayRevoke(c.list, c.revoke, c.force, c.exposed); (err != nil) != c.refused {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
