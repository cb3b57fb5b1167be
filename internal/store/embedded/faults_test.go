package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/proxy"
	"github.com/hostler-proxy/hostler/internal/store"
	"github.com/hostler-proxy/hostler/internal/store/embedded"
)

func fill(t *testing.T, s *embedded.Store, proxies int) {
	t.Helper()
	policy := pool.DefaultPolicy()
	policy.ReuseInterval = 0
	if _, err := s.PutPool(t.Context(), store.PutPoolParams{Name: "p", Record: store.PolicyRecord{Policy: policy}, Expect: -1}); err != nil {
		t.Fatal(err)
	}
	var list []pool.Import
	for i := range proxies {
		p := proxy.Proxy{Scheme: "http", Host: fmt.Sprintf("h%d.example", i), Port: 80}
		list = append(list, pool.Import{ID: p.ID(nil), Spec: pool.Spec{Proxy: p}})
	}
	if _, err := s.Import(t.Context(), store.ImportParams{Pool: "p", Proxies: list}); err != nil {
		t.Fatal(err)
	}
}

func lend(ctx context.Context, s *embedded.Store, target string) (pool.Grant, error) {
	res, err := s.Acquire(ctx, store.AcquireParams{Pool: "p", AcquireParams: pool.AcquireParams{Target: target, Worker: "w"}})
	if err != nil {
		return pool.Grant{}, err
	}
	if res.Refusal != nil {
		return pool.Grant{}, fmt.Errorf("refused: %v", res.Refusal.Reasons)
	}
	return res.Grants[0], nil
}

// TestFullDisk: what cannot be stored is not acknowledged, nothing is half done,
// and when there is room again everything goes on.
func TestFullDisk(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "full.db"))
	fill(t, s, 400)
	ctx := t.Context()
	kept, err := lend(ctx, s, "kept.example")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.LimitPages(1); err != nil {
		t.Fatal(err)
	}
	acknowledged, full := 1, false
	for i := 0; i < 300 && !full; i++ {
		_, err := lend(ctx, s, fmt.Sprintf("t%d.example", i))
		switch {
		case errors.Is(err, store.ErrUnavailable):
			full = true
		case err != nil:
			t.Fatal(err)
		default:
			acknowledged++
		}
	}
	if !full {
		t.Fatal("the disk never filled")
	}
	if _, err := lend(ctx, s, "more.example"); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("while it is full: %v", err)
	}
	if err := s.LimitPages(0); err != nil {
		t.Fatal(err)
	}
	if _, err := lend(ctx, s, "after.example"); err != nil {
		t.Fatalf("with room again: %v", err)
	}
	info, err := s.Pool(ctx, "p")
	if err != nil {
		t.Fatal(err)
	}
	if info.Counts.Live != acknowledged+1 {
		t.Errorf("%d leases live, %d were acknowledged", info.Counts.Live, acknowledged+1)
	}
	res, err := s.Settle(ctx, store.SettleParams{Pool: "p", Endings: []pool.Ending{{Key: kept.Lease.Key, Outcome: pool.Outcome{Class: pool.ClassOK}}}})
	if err != nil || res[0].Result != pool.ResultApplied {
		t.Errorf("a lease from before: %v %v", res, err)
	}
}

// TestReadOnlyFile: the error says what to do.
func TestReadOnlyFile(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Log("root may write anything: the folder stands for it")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "s.db")
	s := open(t, path)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file holds passwords and has mode %v (%v)", info.Mode(), err)
	}
}

// TestDamagedFile: a damaged row is refused at the start, by name.
func TestDamagedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s := open(t, path)
	fill(t, s, 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	exec(t, path, "UPDATE proxy_judge SET state = 'happy'")
	_, err := embedded.Open(t.Context(), options(path))
	if err == nil {
		t.Fatal("it opened")
	}
	t.Log(err)
}

// TestGraceAfterStart: a restart does not reclaim leases at once that ran out
// while nobody could send a heartbeat.
func TestGraceAfterStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	now := pool.At(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	o := options(path)
	o.Clock = func() pool.Time { return now }
	s, err := embedded.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s, 1)
	g, err := lend(t.Context(), s, "a.example")
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	now = now.Add(10 * time.Minute)
	if s, err = embedded.Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // a test's end
	reclaim := func() int {
		res, err := s.Reclaim(t.Context(), store.ReclaimParams{Pool: "p", Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		return len(res.Ended)
	}
	if n := reclaim(); n != 0 {
		t.Fatal("reclaimed at once")
	}
	res, err := s.Extend(t.Context(), store.ExtendParams{Pool: "p", Worker: "w", Leases: []pool.Beat{{Key: g.Lease.Key}}})
	if err != nil || res[0].Result == pool.BeatLost {
		t.Fatalf("its heartbeat: %v %v", res, err)
	}
	now = now.Add(31 * time.Second)
	if n := reclaim(); n != 1 {
		t.Fatalf("after the grace %d", n)
	}
}

// TestFailuresAreBounded: records go by number and by age.
func TestFailuresAreBounded(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "s.db"))
	policy := pool.DefaultPolicy()
	policy.Failures = pool.Retention{Age: time.Hour, Max: 5}
	if _, err := s.PutPool(t.Context(), store.PutPoolParams{Name: "p", Record: store.PolicyRecord{Policy: policy}, Expect: -1}); err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		at := s.Now()
		if i < 3 {
			at = at.Add(-2 * time.Hour)
		}
		if err := s.AddFailure(t.Context(), "p", pool.Failure{At: at, Worker: fmt.Sprint(i), Final: true}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Sweep(t.Context(), store.SweepParams{Pool: "p", Limit: 10}); err != nil {
		t.Fatal(err)
	}
	res, err := s.Failures(t.Context(), store.FailureQuery{Pool: "p", Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Failures) != 5 || res.Failures[0].Worker != "11" {
		t.Errorf("kept %d, newest of %s", len(res.Failures), res.Failures[0].Worker)
	}
}
