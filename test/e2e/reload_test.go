package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hostler-proxy/hostler/client"
)

// TestReload: SIGHUP puts a good policy file in force and leaves a bad one out,
// and leases go on as if nothing had happened.
func TestReload(t *testing.T) {
	d := newDaemon(t)
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	write := func(text string) {
		if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ttl := func() string {
		pools, err := d.api.Config(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return pools["default"].Settings["ttl"]
	}
	await := func(want string) {
		deadline := time.Now().Add(10 * time.Second)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for ttl() != want {
			if time.Now().After(deadline) {
				t.Fatalf("ttl is %s, want %s", ttl(), want)
			}
			<-tick.C
		}
	}
	hup := func() {
		if err := d.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	write("pools: {default: {ttl: 20s}}")
	d.args = []string{"--config", policy}
	d.start()
	await("20s")
	if _, err := d.api.Import(t.Context(), strings.NewReader("10.0.0.1:80"), client.ImportOptions{AllowSpecial: true}); err != nil {
		t.Fatal(err)
	}
	got, err := d.api.Acquire(t.Context(), client.AcquireRequest{Target: "a.example"})
	if err != nil {
		t.Fatal(err)
	}
	write("pools: {default: {ttl: 26s}}")
	hup()
	await("26s")
	write("pools: {default: {ttk: 27s}}")
	hup()
	write("pools: {default: {ttl: 28s}}")
	hup()
	await("28s") // the bad one came and went
	if r, err := d.api.Report(t.Context(), got.Leases[0].ID, client.Facts{Phase: "body", Status: 200}); err != nil || r.Result != "applied" {
		t.Fatalf("the lease from before: %+v %v", r, err)
	}
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Wait(); err != nil {
		t.Fatalf("SIGTERM: %v", err)
	}
	d.cmd = nil
}
