package embedded_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/proxy"
	"github.com/hostler-proxy/hostler/internal/store"
	"github.com/hostler-proxy/hostler/internal/store/embedded"
)

func quiet(int64, int64) {}

// live makes a store in which everything has happened once.
func live(t *testing.T, path string) *embedded.Store {
	t.Helper()
	s := open(t, path)
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	policy := pool.DefaultPolicy()
	policy.ReuseInterval = time.Minute
	policy.Pacing.Start = policy.Pacing.Max
	_, err := s.PutPool(ctx, store.PutPoolParams{
		Name: "p", Record: store.PolicyRecord{Policy: policy, Overrides: map[string]string{"reuse_interval": "1m0s"}}, Expect: -1,
	})
	must(err)
	var list []pool.Import
	for i := range 8 {
		p := proxy.Proxy{Scheme: "http", Host: fmt.Sprintf("h%d.example", i), Port: 80, Username: "ü\"<&>", Password: "s3cr3t-MARK"}
		list = append(list, pool.Import{ID: p.ID(nil), Spec: pool.Spec{Proxy: p, Group: "acct", Labels: "a=b", Region: "de"}})
	}
	list[7].Spec.Group = "other"
	_, err = s.Import(ctx, store.ImportParams{Pool: "p", Proxies: list})
	must(err)
	classes := []pool.Class{pool.ClassOK, pool.ClassProxyDial, pool.ClassBlockedHard, pool.ClassRateLimited, pool.ClassTarget5xx}
	for i, class := range classes {
		res, err := s.Acquire(ctx, store.AcquireParams{Pool: "p", AcquireParams: pool.AcquireParams{
			Target: "a.example", Tenant: "t", Worker: fmt.Sprint("w", i), CallID: fmt.Sprint("c", i), Digest: 1<<63 | 7, Session: fmt.Sprint("s", i),
		}})
		must(err)
		_, err = s.Settle(ctx, store.SettleParams{Pool: "p", Endings: []pool.Ending{{
			Key: res.Grants[0].Lease.Key, Outcome: pool.Outcome{Class: class, Elapsed: 123 * time.Millisecond},
		}}})
		must(err)
	}
	if g, err := lend(ctx, s, "live.example"); err != nil || g.Lease.Fence == 0 {
		t.Fatal(err)
	}
	must(s.AddFailure(ctx, "p", pool.Failure{At: s.Now(), Worker: "w", Final: true, Reason: "gave up\n", Attempts: []string{"x"}}))
	must(s.PutToken(ctx, store.Token{Name: "op", Role: "operator", Hash: bytes.Repeat([]byte{7}, 32), Created: s.Now().Std()}))
	must(s.AddAudit(ctx, store.Audit{Act: "tokens.new", What: "op", Result: "done"}))
	return s
}

func export(t *testing.T, path string, secrets bool) string {
	t.Helper()
	var b bytes.Buffer
	if err := embedded.Export(t.Context(), options(path), &b, secrets, quiet); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestExportImportExport: a store that went through an export gives the same
// text, and the same answers.
func TestExportImportExport(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from.db"), filepath.Join(dir, "to.db")
	s := live(t, from)
	first := export(t, from, true) // while it is held
	keys, err := s.Keys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rows, err := embedded.Restore(t.Context(), options(to), strings.NewReader(first), quiet)
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(first, "\n"); rows != int64(lines-2) {
		t.Errorf("%d rows of %d lines", rows, lines)
	}
	if second := export(t, to, true); second != first {
		t.Errorf("the second export differs:\n%s\n%s", first, second)
	}
	if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v (%v)", info.Mode(), err)
	}
	left, _ := filepath.Glob(to + ".import*")
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	again := open(t, to)
	theirs, err := again.Keys(t.Context())
	if err != nil || !bytes.Equal(keys.ID, theirs.ID) || !bytes.Equal(keys.Lease, theirs.Lease) {
		t.Error("the keys changed")
	}
	a, err1 := s.Pool(t.Context(), "p")
	b, err2 := again.Pool(t.Context(), "p")
	if err1 != nil || err2 != nil || a.Counts.Live != b.Counts.Live || a.Counts.Proxies != b.Counts.Proxies || b.Counts.Live != 1 {
		t.Errorf("%+v became %+v", a.Counts, b.Counts)
	}
}

// TestExportWithoutSecrets: no password, no key, and no import of it.
func TestExportWithoutSecrets(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.db")
	live(t, path)
	text := export(t, path, false)
	if !strings.Contains(export(t, path, true), "s3cr3t-MARK") {
		t.Fatal("the password is nowhere: the test looks at nothing")
	}
	for _, secret := range []string{"s3cr3t-MARK"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q stands in it", secret)
		}
	}
	for line := range strings.Lines(text) {
		if strings.Contains(line, `"table":"meta"`) && !strings.Contains(line, `"value":null`) {
			t.Errorf("a key: %s", line)
		}
	}
	_, err := embedded.Restore(t.Context(), options(filepath.Join(dir, "to.db")), strings.NewReader(text), quiet)
	if err == nil || !strings.Contains(err.Error(), "--passwords") {
		t.Errorf("imported: %v", err)
	}
}

// TestBrokenImports: each is refused with its line, and leaves nothing behind.
func TestBrokenImports(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.db")
	live(t, path)
	good := export(t, path, true)
	lines := strings.SplitAfter(strings.TrimSuffix(good, "\n"), "\n")
	at := func(table string) int {
		for i, line := range lines {
			if strings.Contains(line, `"table":"`+table+`"`) {
				return i
			}
		}
		t.Fatalf("no row of %s", table)
		return 0
	}
	with := func(i int, old, now string) string {
		if !strings.Contains(lines[i], old) {
			t.Fatalf("line %d does not hold %q: %s", i+1, old, lines[i])
		}
		out := append([]string{}, lines...)
		out[i] = strings.Replace(out[i], old, now, 1)
		return strings.Join(out, "")
	}
	proxyLine := at("proxy")
	line := func(i int) string { return fmt.Sprintf("line %d: ", i+1) }
	for name, c := range map[string]struct{ text, want string }{
		"empty":          {"", "line 1: the export is empty"},
		"not an export":  {"10.0.0.1:8080\n", "line 1: this is not an export"},
		"another object": {"{}\n", "line 1: this is not an export"},
		"version":        {with(0, `"hostler_export":1`, `"hostler_export":2`), "line 1: hostler_export: 2"},
		"schema":         {with(0, `"schema":1`, `"schema":9`), "line 1: schema: 9"},
		"head's field":   {with(0, `{`, `{"x":1,`), "line 1: this is not an export"},
		"no last line":   {strings.Join(lines[:len(lines)-1], ""), "breaks off after"},
		"half":           {good[:len(good)/2], line(strings.Count(good[:len(good)/2], "\n"))},
		"a row missing":  {strings.Join(append(append([]string{}, lines[:proxyLine]...), lines[proxyLine+1:]...), ""), "a part of it is missing"},
		"more behind":    {good + "\n{}\n", "more behind"},
		"unknown table":  {with(proxyLine, `"table":"proxy"`, `"table":"poxy"`), line(proxyLine) + `table: there is no table "poxy"`},
		"unknown column": {with(proxyLine, `"host":`, `"hast":`), line(proxyLine) + `table proxy has no column "hast"`},
		"unknown field":  {with(proxyLine, `{"table"`, `{"tbl":1,"table"`), line(proxyLine) + `"tbl" is not a field`},
		"no column":      {with(proxyLine, `"port":80,`, ``), line(proxyLine) + "table proxy: column port is missing"},
		"wrong type":     {with(proxyLine, `"port":80`, `"port":"80"`), line(proxyLine) + "table proxy: column port must be a whole number"},
		"null":           {with(proxyLine, `"port":80`, `"port":null`), line(proxyLine) + "table proxy: column port must not be null"},
		"twice":          {strings.Join(append(append([]string{}, lines[:proxyLine+1]...), lines[proxyLine:]...), ""), line(proxyLine + 1)},
		"no base64":      {with(at("token"), `"hash":"`, `"hash":"*`), "column hash must be base64"},
		"nonsense":       {with(proxyLine, `"ordered":"`, `"ordered":"x`), "makes no store"},
		"binary":         {with(proxyLine, `{"table"`, "\x00\x01"), line(proxyLine)},
	} {
		t.Run(name, func(t *testing.T) {
			to := filepath.Join(t.TempDir(), "to.db")
			_, err := embedded.Restore(t.Context(), options(to), strings.NewReader(c.text), quiet)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("it quotes a password: %v", err)
			}
			left, _ := filepath.Glob(to + "*")
			if len(left) != 1 || left[0] != to+".lock" {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TestImportIntoEmptyOnly: what holds anything is left as it is.
func TestImportIntoEmptyOnly(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.db")
	s := live(t, path)
	text := export(t, path, true)
	restore := func(to string) error {
		_, err := embedded.Restore(t.Context(), options(to), strings.NewReader(text), quiet)
		return err
	}
	if err := restore(path); err == nil || !strings.Contains(err.Error(), "another hostler holds") {
		t.Errorf("a held store: %v", err)
	}
	_ = s.Close()
	if err := restore(path); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a full store: %v", err)
	}
	if export(t, path, true) != text {
		t.Error("a refused import changed the store")
	}
	fresh := filepath.Join(dir, "fresh.db")
	f := open(t, fresh)
	if _, err := f.PutPool(t.Context(), store.PutPoolParams{Name: "default", Record: store.PolicyRecord{Policy: pool.DefaultPolicy()}, Expect: -1}); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	if err := restore(fresh); err != nil {
		t.Fatalf("a fresh store: %v", err)
	}
	if export(t, fresh, true) != text {
		t.Error("it is not the same store")
	}
}

func check(t *testing.T, path string) embedded.Report {
	t.Helper()
	r, err := embedded.Check(t.Context(), options(path))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestCheck: a good store is good, also while it is held; each fault is named.
func TestCheck(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s := live(t, path)
	r := check(t, path)
	if len(r.Wrong) != 0 || r.Schema != 1 {
		t.Fatalf("a good store: %+v", r)
	}
	rows := fmt.Sprint(r.Rows)
	for _, want := range []string{"{pools 1}", "{proxies 8}", "{live leases 1}", "{failures 5}", "{tokens 1}", "{audit records 1}", "{groups 1}"} {
		if !strings.Contains(rows, want) {
			t.Errorf("%s is not in %s", want, rows)
		}
	}
	_ = s.Close()
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ statement, want string }{
		"a use without a proxy":  {"UPDATE proxy_use SET n = n + 1000 WHERE n = (SELECT max(n) FROM proxy_use)", "1 uses of proxies that do not exist"},
		"no judgement":           {"DELETE FROM proxy_judge WHERE n = (SELECT max(n) FROM proxy_judge)", "1 proxies without a judgement"},
		"a lease without target": {"UPDATE lease SET target = 99 WHERE ended = 0", "1 live leases for targets that do not exist"},
		"a pair of nobody":       {"INSERT INTO pair (n, target, proxy, next_ok, epoch, failed) VALUES ((1 << 44) | 999, 77, 78, 0, 0, 0)", "1 pairs of proxies that do not exist"},
		"a damaged state":        {"UPDATE proxy_judge SET state = 'happy'", "it cannot be opened"},
		"a damaged policy":       {"UPDATE pool SET policy = '{'", "column policy is damaged"},
		"half a key":             {"UPDATE lease SET key = x'00' WHERE ended = 0", "1 leases whose key is not whole"},
		"another program's":      {"PRAGMA application_id = 7", "belongs to another program"},
		"a newer one's":          {"PRAGMA user_version = 9", "a newer hostler wrote it"},
		"twice":                  {"INSERT INTO proxy SELECT n + 500, id, scheme, host, port, username, password, region, grp, source, labels, exit, cap, expires_at, added_at, ordered, ordered_until, ordered_reason, removing FROM proxy LIMIT 1", "1 proxies that stand twice"},
	} {
		t.Run(name, func(t *testing.T) {
			bad := filepath.Join(t.TempDir(), "bad.db")
			if err := os.WriteFile(bad, good, 0o600); err != nil {
				t.Fatal(err)
			}
			exec(t, bad, c.statement)
			before, _ := os.ReadFile(bad)
			if r := check(t, bad); !strings.Contains(strings.Join(r.Wrong, "\n"), c.want) {
				t.Errorf("found %q, want %q", r.Wrong, c.want)
			}
			if after, _ := os.ReadFile(bad); !bytes.Equal(before, after) {
				t.Error("the check changed the file")
			}
		})
	}
	t.Run("a hole in the file", func(t *testing.T) {
		bad := filepath.Join(t.TempDir(), "bad.db")
		hole := bytes.Clone(good)
		clear(hole[3*4096 : 6*4096])
		if err := os.WriteFile(bad, hole, 0o600); err != nil {
			t.Fatal(err)
		}
		if r := check(t, bad); !strings.Contains(strings.Join(r.Wrong, "\n"), "structure") {
			t.Errorf("found %q", r.Wrong)
		}
	})
	if _, err := embedded.Check(t.Context(), options(filepath.Join(t.TempDir(), "none.db"))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// TestSnapshotUnderLoad: every lease that was acknowledged before the snapshot
// began is in it, it is a whole store, and nothing is left beside the store.
func TestSnapshotUnderLoad(t *testing.T) {
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "s.db"))
	fill(t, s, 1200)
	var mu sync.Mutex
	var acked []pool.Key
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 300 {
				select {
				case <-stop:
					return
				default:
				}
				g, err := lend(t.Context(), s, fmt.Sprintf("t%d-%d.example", w, i))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				acked = append(acked, g.Lease.Key)
				mu.Unlock()
			}
		})
	}
	for round := range 3 {
		mu.Lock()
		before := append([]pool.Key{}, acked...)
		mu.Unlock()
		snap, err := s.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(snap)
		if err != nil || int64(len(raw)) != snap.Size() {
			t.Fatalf("read %d of %d: %v", len(raw), snap.Size(), err)
		}
		if err := snap.Close(); err != nil {
			t.Fatal(err)
		}
		copied := filepath.Join(t.TempDir(), "copy.db")
		if err := os.WriteFile(copied, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		if r := check(t, copied); len(r.Wrong) > 0 {
			t.Fatalf("round %d: %q", round, r.Wrong)
		}
		c := open(t, copied)
		list, err := c.Leases(t.Context(), "p", 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		have := map[pool.Key]bool{}
		for _, l := range list {
			have[l.Lease.Key] = true
		}
		for _, key := range before {
			if !have[key] {
				t.Fatalf("round %d: lease %s of %d acknowledged ones is not in the copy of %d", round, key.Short(), len(before), len(list))
			}
		}
	}
	close(stop)
	wg.Wait()
	if left, _ := filepath.Glob(filepath.Join(dir, "*snapshot*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestCopyFile: a store that nobody holds can be copied, one that is held cannot.
func TestCopyFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.db")
	s := live(t, path)
	if err := embedded.CopyFile(t.Context(), path, filepath.Join(dir, "x.db")); err == nil || !strings.Contains(err.Error(), "another hostler holds") {
		t.Errorf("held: %v", err)
	}
	_ = s.Close()
	to := filepath.Join(dir, "copy.db")
	if err := embedded.CopyFile(t.Context(), path, to); err != nil {
		t.Fatal(err)
	}
	if export(t, path, true) != export(t, to, true) {
		t.Error("the copy differs")
	}
	if err := embedded.CopyFile(t.Context(), filepath.Join(dir, "none.db"), to); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no store: %v", err)
	}
}

func TestInspect(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "s.db"))
	fill(t, s, 50)
	h, err := s.Inspect(t.Context())
	if err != nil || h.WriteErr != nil || h.Damage != "" || !h.Looked || h.Bytes == 0 || h.Written == 0 || h.Free == 0 {
		t.Fatalf("a good store: %+v %v", h, err)
	}
	_ = s.Close()
	if h, err = s.Inspect(t.Context()); err != nil || !errors.Is(h.WriteErr, store.ErrUnavailable) {
		t.Fatalf("a closed store: %+v %v", h, err)
	}
}

// TestAuditsAreBounded: the newest 100,000 stay.
func TestAuditsAreBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s := open(t, path)
	for _, what := range []string{"first", "second", "third"} {
		if err := s.AddAudit(t.Context(), store.Audit{Act: "a", What: what, Result: "done"}); err != nil {
			t.Fatal(err)
		}
	}
	_ = s.Close()
	exec(t, path, fmt.Sprintf("UPDATE audit SET n = n + %d WHERE n = 3", store.AuditMax-2)) // as if 100,000 had come since the first
	s = open(t, path)
	if err := s.AddAudit(t.Context(), store.Audit{Act: "a", What: "last", Result: "done"}); err != nil {
		t.Fatal(err)
	}
	res, err := s.Audits(t.Context(), store.AuditQuery{Limit: 10})
	if err != nil || len(res.Audits) != 2 || res.Audits[0].What != "last" || res.Audits[1].What != "third" {
		t.Fatalf("kept %+v (%v)", res.Audits, err)
	}
}

// TestKilledInMidCopy: what a daemon left that was killed while copying goes with
// the next start.
func TestKilledInMidCopy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a[b]*.db")
	left := path + ".snapshot-123"
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, path)
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

// TestCheckLeavesAKilledStoreAlone: what a killed daemon has not yet folded into
// its file is seen, and stays where it is.
func TestCheckLeavesAKilledStoreAlone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.db")
	live(t, path) // still open: as a kill leaves it
	killed := filepath.Join(dir, "killed.db")
	for _, end := range []string{"", "-wal"} {
		raw, err := os.ReadFile(path + end)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(killed+end, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.ReadFile(killed + "-wal")
	if err != nil || len(before) == 0 {
		t.Fatal("nothing is unfolded: the test looks at nothing", err)
	}
	r := check(t, killed)
	if len(r.Wrong) > 0 || !strings.Contains(fmt.Sprint(r.Rows), "{proxies 8}") {
		t.Errorf("found %+v", r)
	}
	if after, _ := os.ReadFile(killed + "-wal"); !bytes.Equal(before, after) {
		t.Error("the check folded it")
	}
}
