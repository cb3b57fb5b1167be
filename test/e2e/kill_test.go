// Package e2e tests the built program from outside: processes, sockets, signals.
package e2e

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hostler-proxy/hostler/client"
)

// build builds the program once per test binary.
var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "hostler-e2e-")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "hostler")
	cmd := exec.Command("go", "build", "-o", bin, "../../cmd/hostler")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return bin, nil
})

// TestMain removes what build made.
func TestMain(m *testing.M) {
	code := m.Run()
	if bin, err := build(); err == nil {
		_ = os.RemoveAll(filepath.Dir(bin))
	}
	os.Exit(code)
}

// daemon is a daemon process on a port and a store of its own.
type daemon struct {
	t    *testing.T
	bin  string
	addr string
	file string
	args []string // further flags
	cmd  *exec.Cmd
	api  *client.Client
}

func newDaemon(t *testing.T) *daemon {
	t.Helper()
	bin, err := build()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	d := &daemon{t: t, bin: bin, addr: addr, file: filepath.Join(t.TempDir(), "hostler.db")}
	if d.api, err = client.New("http://" + addr); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.kill)
	return d
}

// start starts the process and waits until it serves.
func (d *daemon) start() {
	d.t.Helper()
	d.cmd = exec.Command(d.bin, append([]string{"serve", "--listen", d.addr, "--store", d.file}, d.args...)...)
	errs, err := d.cmd.StderrPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	ready := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(errs)
		said := ""
		for lines.Scan() {
			said += lines.Text() + "\n"
			if strings.Contains(lines.Text(), "hostler is ready") {
				ready <- ""
				_, _ = io.Copy(io.Discard, errs)
				return
			}
		}
		ready <- said
	}()
	select {
	case said := <-ready:
		if said != "" {
			d.t.Fatalf("the daemon did not start:\n%s", said)
		}
	case <-time.After(20 * time.Second):
		d.t.Fatal("the daemon did not start within 20 s")
	}
}

func (d *daemon) kill() {
	if d.cmd != nil {
		_ = d.cmd.Process.Kill()
		_ = d.cmd.Wait()
		d.cmd = nil
	}
}

// book is what one client was told; it is written before the next call.
type book struct {
	mu      sync.Mutex
	leases  map[string]*entry
	pending *pending
}

type entry struct {
	lease   client.Lease
	expires time.Time
	class   string // of the acknowledged report
	ended   bool
}

// pending is a call whose answer did not come: it is sent again after the restart.
type pending struct {
	lease string
	facts client.Facts
}

var outcomes = []client.Facts{
	{Phase: "body", Status: 200, HTTPS: true},
	{Phase: "body", Status: 200, HTTPS: true},
	{Phase: "body", Status: 200, HTTPS: true},
	{Phase: "body", Status: 200, HTTPS: true},
	{Phase: "body", Status: 200, HTTPS: true},
	{Phase: "body", Status: 404, HTTPS: true},
	{Phase: "body", Status: 500, HTTPS: true},
	{Phase: "body", Status: 403, HTTPS: true},
	{Phase: "sent", Error: "reset"},
	{Phase: "proxy_dial", Error: "refused"},
}

// work leases and reports until the daemon is gone.
func (b *book) work(ctx context.Context, api *client.Client, n int, rng *rand.Rand) {
	b.resend(ctx, api)
	for ctx.Err() == nil {
		got, err := api.Acquire(ctx, client.AcquireRequest{
			Target: fmt.Sprintf("t%d.example", rng.IntN(20)), Worker: fmt.Sprintf("c%d", n), TTLMS: 600_000, WaitMS: 200,
		})
		if client.IsProblem(err, client.NoProxy) {
			continue
		}
		if err != nil {
			return
		}
		lease := got.Leases[0]
		b.mu.Lock()
		b.leases[lease.ID] = &entry{lease: lease, expires: lease.ExpiresAt}
		b.mu.Unlock()
		if rng.IntN(100) == 0 {
			continue // keeps it
		}
		b.report(ctx, api, lease.ID, outcomes[rng.IntN(len(outcomes))])
	}
}

func (b *book) report(ctx context.Context, api *client.Client, id string, facts client.Facts) {
	b.mu.Lock()
	b.pending = &pending{id, facts}
	b.mu.Unlock()
	reported, err := api.Report(ctx, id, facts)
	if err != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.leases[id]
	e.ended, e.class = true, reported.Class
	b.pending = nil
}

// resend sends the call again whose answer was lost: the ids make it harmless.
func (b *book) resend(ctx context.Context, api *client.Client) {
	b.mu.Lock()
	p := b.pending
	b.mu.Unlock()
	if p != nil {
		b.report(ctx, api, p.lease, p.facts)
	}
}

// TestKill kills the daemon with -9 under load, again and again, and holds the
// clients' books against the restarted one.
func TestKill(t *testing.T) {
	kills := 3
	if text := os.Getenv("HOSTLER_KILLS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		kills = n
	}
	d := newDaemon(t)
	d.start()
	if _, err := d.api.PutPool(t.Context(), "default", map[string]any{"max_lifetime_ms": 3_600_000, "pacing": map[string]any{"start": 100_000}}); err != nil {
		t.Fatal(err)
	}
	books := make([]*book, 16)
	for i := range books {
		books[i] = &book{leases: map[string]*entry{}}
	}
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	var inCommit, inCheckpoint, inFlight int
	for k := range kills {
		refresh(t, d, k)
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for n, b := range books {
			seed := rng.Uint64()
			wg.Go(func() { b.work(ctx, d.api, n, rand.New(rand.NewPCG(seed, 2))) })
		}
		wait := time.NewTimer(time.Duration(200+rng.IntN(600)) * time.Millisecond)
		if k%2 == 0 {
			awaitCheckpoint(d.file+"-shm", wait.C)
		} else {
			<-wait.C
		}
		resting := rests(t, d)
		d.kill()
		stop()
		wg.Wait()
		commit, checkpoint := torn(t, d.file)
		inCommit, inCheckpoint = inCommit+commit, inCheckpoint+checkpoint
		for _, b := range books {
			if b.pending != nil {
				inFlight++
				break
			}
		}
		d.start()
		for _, b := range books {
			b.resend(t.Context(), d.api)
		}
		compare(t, d, books)
		for id, until := range rests(t, d) {
			if was, ok := resting[id]; ok && until.Before(was) {
				t.Errorf("proxy %s rests until %s, did until %s", id, until, was)
			}
			delete(resting, id)
		}
		for id, was := range resting {
			if time.Until(was) > time.Second {
				t.Errorf("proxy %s rests no more, did for %s", id, time.Until(was))
			}
		}
		if t.Failed() {
			t.Fatalf("after kill %d", k+1)
		}
	}
	total := 0
	for _, b := range books {
		total += len(b.leases)
	}
	t.Logf("%d kills, %d leases: %d kills left a call unanswered, %d a half-written commit in the WAL, %d a checkpoint under way",
		kills, total, inFlight, inCommit, inCheckpoint)
	if inFlight < kills/5 || inCheckpoint < kills/10 || total < 100*kills {
		t.Errorf("too little was going on at the kills to prove anything")
	}
}

// refresh brings proxies that nothing is held against, so that the load lasts:
// those of the rounds before rest more and more.
func refresh(t *testing.T, d *daemon, round int) {
	t.Helper()
	var list strings.Builder
	for i := range 200 {
		fmt.Fprintf(&list, "10.%d.0.%d:8080:user:pass\n", round, i)
	}
	if _, err := d.api.Import(t.Context(), strings.NewReader(list.String()), client.ImportOptions{AllowSpecial: true, Cap: 2}); err != nil {
		t.Fatal(err)
	}
}

// rests lists the ends of the rests that run.
func rests(t *testing.T, d *daemon) map[string]time.Time {
	t.Helper()
	list, err := d.api.AllProxies(t.Context(), client.ProxyFilter{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]time.Time{}
	for _, p := range list {
		if p.State == "cooling" || p.State == "suspended" {
			out[p.ID] = *p.Until
		}
	}
	return out
}

// compare holds the books against the daemon.
func compare(t *testing.T, d *daemon, books []*book) {
	t.Helper()
	live, err := d.api.Leases(t.Context(), "", 10_000)
	if err != nil {
		t.Fatal(err)
	}
	byShort := map[string]client.LiveLease{}
	held := map[string]int{}
	for _, l := range live {
		byShort[l.Lease] = l
		held[l.Proxy]++
	}
	counted := 0
	for _, b := range books {
		for id, e := range b.leases {
			l, ok := byShort[id[:8]]
			switch {
			case e.ended && ok:
				t.Errorf("lease %s had ended and lives again", id[:8])
			case !e.ended && !ok && time.Until(e.expires) > time.Second:
				t.Errorf("lease %s is lost: it runs for %s more", id[:8], time.Until(e.expires))
			case ok && !l.ExpiresAt.Equal(e.expires):
				t.Errorf("lease %s expires at %s, was told %s", id[:8], l.ExpiresAt, e.expires)
			}
			if e.ended {
				counted++
			}
		}
		checkRepeats(t, d, b)
	}
	proxies, err := d.api.AllProxies(t.Context(), client.ProxyFilter{})
	if err != nil {
		t.Fatal(err)
	}
	day, hour := int64(0), int64(0)
	for _, p := range proxies {
		day += p.Windows.Day.Total
		hour += p.Windows.Hour.Total
		if held[p.ID] > p.Cap || held[p.ID] != p.InUse {
			t.Errorf("proxy %s: %d live leases, in use %d, cap %d", p.ID, held[p.ID], p.InUse, p.Cap)
		}
		if p.Streak > 0 && p.State == "active" {
			t.Errorf("proxy %s is active with a streak of %d", p.ID, p.Streak)
		}
	}
	if day != int64(counted) && !dayTurned() || hour != int64(counted) {
		t.Errorf("windows: %d today, %d in the hour; the books have %d reports", day, hour, counted)
	}
}

// dayTurned says that the run is close to midnight, when the day's sums start anew.
func dayTurned() bool {
	now := time.Now().UTC()
	return now.Hour() == 0 && now.Minute() < 15
}

// checkRepeats sends some acknowledged reports again: they are known.
func checkRepeats(t *testing.T, d *daemon, b *book) {
	t.Helper()
	n := 0
	for id, e := range b.leases {
		if !e.ended || time.Since(e.lease.GrantedAt) > 90*time.Second { // ended leases are kept for 120 s
			continue
		}
		if n++; n > 5 {
			return
		}
		again, err := d.api.Report(t.Context(), id, client.Facts{Phase: "body", Status: 200})
		if err != nil {
			t.Fatal(err)
		}
		if again.Result != "duplicate" || again.Class != e.class {
			t.Errorf("a repeat of %s is %s %s, was %s", id[:8], again.Result, again.Class, e.class)
		}
	}
}

// awaitCheckpoint waits until SQLite is copying the WAL back, or for the timer.
// The shared-memory file says so: its count of attempted frames is then ahead of
// the count of copied ones (sqlite.org/walformat.html, 2.2).
func awaitCheckpoint(shm string, timer <-chan time.Time) {
	for {
		select {
		case <-timer:
			return
		default:
		}
		if checkpointing(shm) {
			return
		}
	}
}

func checkpointing(shm string) bool {
	f, err := os.Open(shm)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // only read
	var b [136]byte
	if _, err := io.ReadFull(f, b[:]); err != nil {
		return false
	}
	copied, attempted := binary.NativeEndian.Uint32(b[96:]), binary.NativeEndian.Uint32(b[128:])
	return attempted > copied
}

// torn looks at the files that the kill left: frames behind the last commit of
// the WAL, and a checkpoint that did not end.
func torn(t *testing.T, file string) (commit, checkpoint int) {
	t.Helper()
	if checkpointing(file + "-shm") {
		checkpoint = 1
	}
	wal, err := os.ReadFile(file + "-wal")
	if errors.Is(err, os.ErrNotExist) || len(wal) < 32 {
		return 0, checkpoint
	}
	if err != nil {
		t.Fatal(err)
	}
	page := int(binary.BigEndian.Uint32(wal[8:]))
	salt := string(wal[16:24])
	open := false
	for at := 32; at+24+page <= len(wal); at += 24 + page {
		if string(wal[at+8:at+16]) != salt {
			break // of an earlier round of the WAL
		}
		open = binary.BigEndian.Uint32(wal[at+4:]) == 0
	}
	if open {
		commit = 1
	}
	return commit, checkpoint
}
