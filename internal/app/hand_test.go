package app_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hostler-proxy/hostler/client"
	"github.com/hostler-proxy/hostler/internal/app"
)

// walkHand calls what an operator's hand can do, once each.
func (d *daemon) walkHand() {
	ctx := d.t.Context()
	lease := d.acquire(client.AcquireRequest{Session: "h1", Worker: "hand", Target: "hand.example"})
	list, _, err := d.api.Sessions(ctx, client.SessionFilter{})
	d.must(err)
	if len(list) != 2 || list[0].Session != "h1" || list[0].Proxy != lease.Proxy.ID {
		d.t.Errorf("sessions %+v", list)
	}
	moved, err := d.api.MoveSession(ctx, "", "h1")
	d.must(err)
	if !moved.Moving {
		d.t.Errorf("moved %+v", moved)
	}
	_, err = d.api.MoveSession(ctx, "", "nobody")
	isProblem(d.t, err, client.UnknownSession)
	_, err = d.api.ReleaseGroup(ctx, "", "acct")
	d.must(err)
	_, err = d.api.ReleaseGroup(ctx, "", "nobody")
	isProblem(d.t, err, client.UnknownGroup)
	revoked, err := d.api.RevokeLeases(ctx, client.LeaseFilter{Lease: lease.ID[:8]}, client.Bulk{})
	d.must(err)
	if revoked.Matched != 1 || revoked.First[0].Worker != "hand" {
		d.t.Errorf("revoked %+v", revoked)
	}
	removed, err := d.api.DeleteProxies(ctx, client.ProxyFilter{Group: "nobody"}, client.Bulk{DryRun: true})
	d.must(err)
	if removed.Matched != 0 {
		d.t.Errorf("removed %+v", removed)
	}
	_, err = d.api.Backup(ctx, &bytes.Buffer{})
	d.must(err)
	_, err = d.api.Doctor(ctx)
	d.must(err)
	_, _, err = d.api.Audit(ctx, client.AuditFilter{Act: "leases.revoke"})
	d.must(err)
}

// TestHoldRelease: releasing a group wakes who waits for it at once, and says so.
func TestHoldRelease(t *testing.T) {
	d := start(t, nil)
	ctx := t.Context()
	_, err := d.api.Import(ctx, strings.NewReader("10.0.0.1:8080"), client.ImportOptions{Group: "acct/1", AllowSpecial: true})
	d.must(err)
	lease := d.acquire(client.AcquireRequest{})
	_, err = d.api.Report(ctx, lease.ID, client.Facts{Phase: "handshake", Status: 402, RetryAfter: "50"})
	d.must(err)
	_, err = d.api.Acquire(ctx, client.AcquireRequest{Target: "other.example"})
	if p := wantProblem(t, err, client.NoProxy); p.Reasons["group_hold"] != 1 {
		t.Fatalf("held back for %v", p.Reasons)
	}
	got := make(chan error, 1)
	go func() {
		_, err := d.api.Acquire(ctx, client.AcquireRequest{Target: "other.example", WaitMS: 60_000})
		got <- err
	}()
	d.until(func() bool { return d.waiting() == 1 })
	before := time.Now()
	res, err := d.api.ReleaseGroup(ctx, "", "acct/1")
	d.must(err)
	if !res.Released || res.HeldUntil == nil || res.HeldUntil.Before(before.Add(30*time.Second)) {
		t.Fatalf("released %+v", res)
	}
	d.must(<-got)
	if waited := time.Since(before); waited > 20*time.Second {
		t.Fatalf("the waiter was served after %s: the hold ended by itself", waited)
	}
	res, err = d.api.ReleaseGroup(ctx, "", "acct/1")
	d.must(err)
	if res.Released {
		t.Error("released twice")
	}
}

// TestMovedSession: the next lease gets another proxy and says which it left.
func TestMovedSession(t *testing.T) {
	d := start(t, nil)
	ctx := t.Context()
	d.add("10.0.0.1:8080\n10.0.0.2:8080")
	first := d.acquire(client.AcquireRequest{Session: "cart/17"})
	_, err := d.api.MoveSession(ctx, "", "cart/17")
	d.must(err)
	second := d.acquire(client.AcquireRequest{Session: "cart/17"})
	if second.Proxy.ID == first.Proxy.ID || !second.SessionMoved || second.PreviousProxy != first.Proxy.ID {
		t.Fatalf("moved %v from %s to %s, before %s", second.SessionMoved, second.PreviousProxy, second.Proxy.ID, first.Proxy.ID)
	}
	s, err := d.api.Session(ctx, "", "cart/17")
	d.must(err)
	if s.Moving || s.Proxy != second.Proxy.ID {
		t.Errorf("now %+v", s)
	}
}

// TestRevokeByWorker: a dry run ends nothing; then the holder learns it, and its
// report is stale.
func TestRevokeByWorker(t *testing.T) {
	d := start(t, nil)
	ctx := t.Context()
	d.add("10.0.0.1:8080\n10.0.0.2:8080\n10.0.0.3:8080")
	a, b := d.acquire(client.AcquireRequest{Worker: "a"}), d.acquire(client.AcquireRequest{Worker: "b"})
	for _, dry := range []bool{true, false} {
		res, err := d.api.RevokeLeases(ctx, client.LeaseFilter{Worker: "b"}, client.Bulk{DryRun: dry})
		d.must(err)
		if res.Matched != 1 || res.DryRun != dry || res.First[0].Lease != b.ID[:8] {
			t.Fatalf("dry %v: %+v", dry, res)
		}
		beat, err := d.api.Heartbeat(ctx, "b", 1, []string{a.ID, b.ID})
		d.must(err)
		want := map[bool]string{true: "ok", false: "lost"}[dry]
		if beat.Leases[0].Result != "ok" || beat.Leases[1].Result != want {
			t.Fatalf("dry %v: heartbeat %+v", dry, beat.Leases)
		}
	}
	reported, err := d.api.Report(ctx, b.ID, client.Facts{Phase: "proxy_dial", Error: "refused"})
	d.must(err)
	if reported.Result != "stale" {
		t.Errorf("its late report is %s", reported.Result)
	}
	state := "disabled"
	_, err = d.api.PatchProxies(ctx, client.ProxyFilter{}, client.ProxyPatch{State: &state}, client.Bulk{All: true})
	d.must(err)
	beat, err := d.api.Heartbeat(ctx, "a", 1, []string{a.ID})
	d.must(err)
	if beat.Leases[0].Result != "stop" {
		t.Errorf("on a paused proxy: %+v", beat.Leases)
	}
	for _, f := range []client.LeaseFilter{{}, {Lease: "short"}} {
		_, err = d.api.RevokeLeases(ctx, f, client.Bulk{})
		isProblem(t, err, client.InvalidRequest)
	}
	_, err = d.api.RevokeLeases(ctx, client.LeaseFilter{Worker: "a"}, client.Bulk{All: true})
	isProblem(t, err, client.InvalidRequest)
}

// TestBulkRemove: a dry run shows at most 20, and removing leaves the others.
func TestBulkRemove(t *testing.T) {
	d := start(t, nil)
	ctx := t.Context()
	var list strings.Builder
	for i := range 25 {
		fmt.Fprintf(&list, "10.0.1.%d:8080\n", i)
	}
	_, err := d.api.Import(ctx, strings.NewReader(list.String()), client.ImportOptions{Group: "old", AllowSpecial: true})
	d.must(err)
	d.add("10.0.0.1:8080")
	_, err = d.api.DeleteProxies(ctx, client.ProxyFilter{}, client.Bulk{})
	isProblem(t, err, client.InvalidRequest)
	would, err := d.api.DeleteProxies(ctx, client.ProxyFilter{Group: "old"}, client.Bulk{DryRun: true})
	d.must(err)
	if would.Matched != 25 || len(would.First) != 20 || !would.DryRun {
		t.Fatalf("would remove %d, shows %d", would.Matched, len(would.First))
	}
	did, err := d.api.DeleteProxies(ctx, client.ProxyFilter{Group: "old"}, client.Bulk{})
	d.must(err)
	p, err := d.api.Pool(ctx, "default")
	d.must(err)
	if did.Matched != 25 || p.Proxies != 1 {
		t.Errorf("removed %d, %d are left", did.Matched, p.Proxies)
	}
}

// TestAudit: every change by an operator leaves a record with who and what, dry
// runs and refused calls leave none, and no secret gets into it.
func TestAudit(t *testing.T) {
	const marker = "S3cr3t-MARK"
	d := start(t, nil)
	ctx := t.Context()
	op, err := d.api.NewToken(ctx, "op", "operator")
	d.must(err)
	d.api = d.client(op.Token)
	_, err = d.api.Import(ctx, strings.NewReader("10.0.0.1:8080:u:"+marker+"\n10.0.0.2:8080:u:"+marker+"\nbroken"), client.ImportOptions{Group: "acct", AllowSpecial: true})
	d.must(err)
	lease := d.acquire(client.AcquireRequest{Session: "s", Worker: "w"})
	state := "disabled"
	patch := client.ProxyPatch{State: &state, Reason: "bill unpaid"}
	_, err = d.api.PatchProxies(ctx, client.ProxyFilter{Group: "acct"}, patch, client.Bulk{DryRun: true})
	d.must(err)
	_, err = d.api.PatchProxies(ctx, client.ProxyFilter{}, patch, client.Bulk{})
	isProblem(t, err, client.InvalidRequest)
	isProblem(t, d.api.PatchProxy(ctx, "", strings.Repeat("0", 32), patch), client.UnknownProxy)
	_, err = d.api.PatchProxies(ctx, client.ProxyFilter{Group: "acct"}, patch, client.Bulk{})
	d.must(err)
	d.must(d.api.Revoke(ctx, lease.ID))
	_, err = d.api.MoveSession(ctx, "", "s")
	d.must(err)
	_, err = d.api.ReleaseGroup(ctx, "", "acct")
	d.must(err)
	_, err = d.api.ApplyConfig(ctx, strings.NewReader("pools: {default: {ttl: 20s}}"), true)
	d.must(err)
	_, err = d.api.ApplyConfig(ctx, strings.NewReader("pools: {default: {ttl: 20s}}"), false)
	d.must(err)
	_, err = d.api.PutPool(ctx, "second", map[string]any{"ttl_ms": 5000})
	d.must(err)
	_, err = d.api.Backup(ctx, &bytes.Buffer{})
	d.must(err)
	_, err = d.api.NewToken(ctx, "crawl", "worker")
	d.must(err)
	d.must(d.api.RevokeToken(ctx, "crawl"))
	d.must(d.api.DeleteProxy(ctx, "", lease.Proxy.ID))
	viewer, err := d.api.NewToken(ctx, "look", "viewer")
	d.must(err)
	list, cursor, err := d.client(viewer.Token).Audit(ctx, client.AuditFilter{})
	d.must(err)
	var got strings.Builder
	for _, a := range list {
		fmt.Fprintf(&got, "%s|%s|%s|%s|%d|%s\n", a.Who, a.Act, a.Pool, a.What, a.Count, a.Result)
		if a.Peer != "127.0.0.1" || a.At.IsZero() {
			t.Errorf("from %q at %s", a.Peer, a.At)
		}
	}
	want := []string{
		"op|tokens.new||look role=viewer|1|done",
		"op|proxies.remove|default|" + lease.Proxy.ID + "|1|done",
		"op|tokens.revoke||crawl|1|done",
		"op|tokens.new||crawl role=worker|1|done",
		"op|store.backup||",
		"op|pools.put|second|pools.second.ttl 30s -> 5s|1|done",
		"op|config.apply||pools.default.ttl 30s -> 20s|1|done",
		"op|groups.release|default|acct|0|done",
		"op|sessions.move|default|s|1|done",
		"op|leases.revoke|default|" + lease.ID[:8] + "|1|done",
		"op|proxies.patch|default|group=acct: state=disabled reason=bill unpaid|2|done",
		"op|proxies.import|default|allow_special=true&group=acct|2|done",
		"|tokens.new||op role=operator|1|done",
	}
	lines := strings.Split(strings.TrimSuffix(got.String(), "\n"), "\n")
	if len(lines) != len(want) || cursor != "" {
		t.Fatalf("%d records, want %d:\n%s", len(lines), len(want), got.String())
	}
	for i := range want {
		if !strings.HasPrefix(lines[i], want[i]) {
			t.Errorf("record %d: %s, want %s", i, lines[i], want[i])
		}
	}
	for _, secret := range []string{marker, lease.ID, op.Token, viewer.Token} {
		if strings.Contains(got.String(), secret) {
			t.Errorf("%s stands in the records", secret)
		}
	}
	page, cursor, err := d.api.Audit(ctx, client.AuditFilter{Limit: 2, Who: "op"})
	d.must(err)
	next, _, err := d.api.Audit(ctx, client.AuditFilter{Limit: 2, Who: "op", Cursor: cursor})
	d.must(err)
	if len(page) != 2 || len(next) != 2 || next[0].ID >= page[1].ID {
		t.Errorf("pages %+v and %+v", page, next)
	}
}

// TestBackupIsWhole: what the API answers is a store that passes its check and
// opens, and one backup at a time is made.
func TestBackupIsWhole(t *testing.T) {
	d := start(t, nil)
	ctx := t.Context()
	d.add("10.0.0.1:8080\n10.0.0.2:8080")
	lease := d.acquire(client.AcquireRequest{})
	path := filepath.Join(t.TempDir(), "backup.db")
	err := app.WriteWhole(path, false, func(name string) error {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = d.api.Backup(ctx, f)
		return errors.Join(err, f.Close())
	})
	d.must(err)
	r, err := app.CheckStore(ctx, path)
	d.must(err)
	if len(r.Wrong) > 0 {
		t.Fatalf("it is not whole: %q", r.Wrong)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v %v", info.Mode(), err)
	}
	second := start(t, func(o *app.Options) { o.Store = path })
	beat, err := second.api.Heartbeat(ctx, "w", 1, []string{lease.ID})
	second.must(err)
	if beat.Leases[0].Result != "ok" {
		t.Errorf("the lease in the copy: %+v", beat.Leases)
	}
	var usage *app.UsageError
	if err := app.WriteWhole(path, false, nil); !errors.As(err, &usage) {
		t.Errorf("a file that is there: %v", err)
	}
	if err := app.WriteWhole(path, true, nil); !errors.As(err, &usage) || !strings.Contains(err.Error(), "running hostler") {
		t.Errorf("a store in use: %v", err)
	}
}

// TestWriteWhole: what fails leaves nothing, and what was there stays.
func TestWriteWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	fails := errors.New("in the middle")
	err := app.WriteWhole(path, true, func(name string) error {
		return errors.Join(os.WriteFile(name, []byte("ne"), 0o600), fails)
	})
	if !errors.Is(err, fails) {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "*"))
	if text, _ := os.ReadFile(path); string(text) != "old" || len(left) != 1 {
		t.Errorf("%q, files %v", text, left)
	}
	if err := app.WriteWhole(path, true, func(name string) error { return os.WriteFile(name, []byte("new"), 0o600) }); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(path); string(text) != "new" {
		t.Errorf("%q", text)
	}
}

// TestRevokedTokenEndsAtOnce: also on a connection that stays open.
func TestRevokedTokenEndsAtOnce(t *testing.T) {
	d := start(t, nil)
	ctx := t.Context()
	op, err := d.api.NewToken(ctx, "op", "operator")
	d.must(err)
	d.api = d.client(op.Token)
	look, err := d.api.NewToken(ctx, "look", "viewer")
	d.must(err)
	viewer := d.client(look.Token)
	_, err = viewer.Pools(ctx)
	d.must(err)
	list, err := d.api.Tokens(ctx)
	d.must(err)
	for _, x := range list {
		if x.LastUsedAt == nil {
			t.Errorf("%s was used, and is not said to be", x.Name)
		}
	}
	_, err = d.api.NewToken(ctx, "look", "worker")
	isProblem(t, err, client.Conflict)
	isProblem(t, d.api.RevokeToken(ctx, "op"), client.Conflict) // the viewer's would be left
	d.must(d.api.RevokeToken(ctx, "look"))
	_, err = viewer.Pools(ctx)
	isProblem(t, err, client.Unauthorized)
	isProblem(t, d.api.RevokeToken(ctx, "nobody"), client.UnknownToken)
}

// TestDoctor: each fault is found by its check, with something to do.
func TestDoctor(t *testing.T) {
	now := time.Now()
	config := filepath.Join(t.TempDir(), "policy.yaml")
	write := func(text string) {
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("pools: {default: {ttl: 20s}}")
	var shift atomic.Int64
	d := start(t, func(o *app.Options) {
		o.Config = config
		o.Clock = func() time.Time { return now.Add(time.Duration(shift.Load())) }
	})
	ctx := context.WithoutCancel(t.Context())
	want := func(name, status, part string) {
		t.Helper()
		found, err := d.api.Doctor(ctx)
		d.must(err)
		for _, c := range found.Checks {
			if c.Name != name {
				continue
			}
			if c.Status != status || !strings.Contains(c.Text, part) || (c.Hint == "") != (status == "ok") {
				t.Errorf("%s: %s %q -> %q, want %s %q", name, c.Status, c.Text, c.Hint, status, part)
			}
			return
		}
		t.Errorf("%s was not looked at: %+v", name, found.Checks)
	}
	d.until(func() bool {
		found, err := d.api.Doctor(ctx)
		d.must(err)
		return slices.ContainsFunc(found.Checks, func(c client.Check) bool { return c.Name == "recovery" && c.Status == "ok" })
	})
	want("store writes", "ok", "a write took")
	want("store structure", "ok", "nothing wrong")
	want("clock", "ok", "not set back")
	want("access", "ok", "no token")
	want("policy", "ok", "in force")
	want("waiters of default", "ok", "nobody waits")
	want("pool default", "warn", "0 proxies")
	_, err := d.api.Import(ctx, strings.NewReader("10.0.0.1:8080\n10.0.0.2:8080"), client.ImportOptions{Group: "acct", AllowSpecial: true})
	d.must(err)
	want("pool default", "ok", "2 proxies, 2 ready")
	write("pools: {default: {ttl: 25s}}")
	want("policy", "warn", "pools.default.ttl")
	write("pools: {default: {ttk: 25s}}")
	want("policy", "fail", "ttk")
	write("pools: {default: {ttl: 20s}}")
	_, err = d.api.PutPool(ctx, "default", map[string]any{"ttl_ms": 15_000})
	d.must(err)
	want("policy", "ok", "edited through the API over it: pools.default.ttl")
	a, b := d.acquire(client.AcquireRequest{}), d.acquire(client.AcquireRequest{})
	want("pool default", "warn", "2 are leased")
	d.must(d.api.Release(ctx, a.ID))
	_, err = d.api.Report(ctx, b.ID, client.Facts{Phase: "handshake", Status: 402, RetryAfter: "40"})
	d.must(err)
	want("pool default", "fail", "group acct held")
	got := make(chan error, 1)
	go func() {
		_, err := d.api.Acquire(ctx, client.AcquireRequest{Target: "x.example", WaitMS: 60_000, Select: &client.Select{Group: "acct"}})
		got <- err
	}()
	d.until(func() bool { return d.waiting() == 1 })
	want("waiters of default", "ok", "1 wait, the oldest for")
	_, err = d.api.ReleaseGroup(ctx, "", "acct")
	d.must(err)
	d.must(<-got)
	shift.Store(int64(-time.Hour))
	want("clock", "fail", "behind")
}

// TestActsWithoutTheAPI: what comes from the policy file and the command line is
// recorded too.
func TestActsWithoutTheAPI(t *testing.T) {
	dir := t.TempDir()
	config, file := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "s.db")
	write := func(text string) {
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := app.NewToken(t.Context(), file, "op", "operator", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	write("pools: {default: {ttl: 20s}}")
	d := start(t, func(o *app.Options) { o.Store, o.Config = file, config })
	d.api = d.client(text)
	write("pools: {default: {ttl: 25s}}")
	d.must(d.app.Reload(t.Context()))
	d.must(d.app.Reload(t.Context())) // changes nothing
	list, _, err := d.api.Audit(t.Context(), client.AuditFilter{})
	d.must(err)
	var got []string
	for _, a := range list {
		got = append(got, fmt.Sprintf("%s %s: %s", a.Peer, a.Act, a.What))
	}
	want := []string{
		"policy file config.apply: pools.default.ttl 20s -> 25s", "policy file config.apply: pools.default.ttl 30s -> 20s",
		"command line tokens.new: op role=operator",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
