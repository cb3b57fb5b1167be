package httpapi

import (
	"net/http"
	"testing"

	"github.com/hostler-proxy/hostler/api/apitest"
)

// TestEveryOperatorCallIsNamed: a call that changes something has a name in the
// audit records.
func TestEveryOperatorCallIsNamed(t *testing.T) {
	contract, err := apitest.Load()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, op := range contract.Operations() {
		if op.Role != "operator" || op.Method == http.MethodGet {
			continue
		}
		n++
		if acts[op.Method+" "+op.Path] == "" {
			t.Errorf("%s %s has no name in audit records", op.Method, op.Path)
		}
	}
	if n < 10 {
		t.Errorf("only %d calls were seen", n)
	}
}
