package e2e

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hostler-proxy/hostler/client"
)

// TestBackupUnderLoad backs the store up while clients lease, and wants every
// lease that was acknowledged before a backup began to live in that backup.
func TestBackupUnderLoad(t *testing.T) {
	const backups, clients, proxies, enough = 3, 4, 10_000, 40
	d := newDaemon(t)
	d.start()
	var list strings.Builder
	for i := range proxies {
		fmt.Fprintf(&list, "10.%d.%d.%d:8080:u:p\n", i>>16, i>>8&255, i&255)
	}
	if _, err := d.api.Import(t.Context(), strings.NewReader(list.String()), client.ImportOptions{AllowSpecial: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.api.PutPool(t.Context(), "default", map[string]any{"pacing": map[string]any{"start": 100_000}}); err != nil { // leases are kept
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	acks := &acked{grown: make(chan struct{}, 1)}
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			if err := lendOn(ctx, d.api, c, acks); err != nil {
				t.Error(err)
			}
		})
	}
	dir := t.TempDir()
	before := make([][]string, backups)
	for i := range backups {
		acks.wait(t, (i+1)*enough)
		before[i] = acks.ids()
		hostler(t, d, "store", "backup", filepath.Join(dir, fmt.Sprint(i, ".db")))
	}
	acks.wait(t, len(acks.ids())+1) // the load went on to the end
	stop()
	wg.Wait()
	d.kill()
	for i := range backups {
		file := filepath.Join(dir, fmt.Sprint(i, ".db"))
		hostler(t, d, "store", "check", file)
		copied := newDaemon(t)
		copied.file = file
		copied.start()
		lost := 0
		for ids := range slices.Chunk(before[i], 1000) {
			beat, err := copied.api.Heartbeat(t.Context(), "any", 1, ids)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range beat.Leases {
				if b.Result == "lost" { // those that live have as long as a lease can have: max_lifetime
					lost++
				}
			}
		}
		if lost > 0 {
			t.Errorf("backup %d: %d of %d leases that were acknowledged before it are lost", i, lost, len(before[i]))
		}
		t.Logf("backup %d: %d leases were acknowledged before it", i, len(before[i]))
		copied.kill()
	}
}

// hostler runs a command against a daemon, and wants it to succeed.
func hostler(t *testing.T, d *daemon, args ...string) {
	t.Helper()
	out, err := exec.Command(d.bin, append(args, "--server", "http://"+d.addr)...).CombinedOutput()
	if err != nil {
		t.Fatalf("hostler %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// acked are the leases whose grants came back.
type acked struct {
	mu    sync.Mutex
	list  []string
	grown chan struct{}
}

func (a *acked) add(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(a.list, id)
	select {
	case a.grown <- struct{}{}:
	default:
	}
}

func (a *acked) ids() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string{}, a.list...)
}

// wait waits until so many were acknowledged.
func (a *acked) wait(t *testing.T, n int) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for len(a.ids()) < n {
		select {
		case <-a.grown:
		case <-deadline:
			t.Fatalf("only %d leases were granted within 30 s", len(a.ids()))
		}
	}
}

// lendOn leases again and again, and keeps every lease, until all are out.
func lendOn(ctx context.Context, api *client.Client, c int, acks *acked) error {
	for ctx.Err() == nil {
		got, err := api.Acquire(ctx, client.AcquireRequest{
			Target: fmt.Sprintf("t%d.example", c), Worker: fmt.Sprint("w", c), TTLMS: 600_000, WaitMS: 1000,
		})
		switch {
		case client.IsProblem(err, client.NoProxy), errors.Is(err, context.Canceled):
			return nil
		case err != nil:
			return err
		}
		acks.add(got.Leases[0].ID)
	}
	return nil
}
