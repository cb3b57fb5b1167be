package pool_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hostler-proxy/hostler/internal/judge"
	"github.com/hostler-proxy/hostler/internal/pool"
)

// RevokeMany takes all leases on one target back, after a dry run that must
// change nothing and tell the same.
func (m *machine) RevokeMany(t *rapid.T) {
	target := rapid.SampledFrom(machineTargets).Draw(t, "target")
	f := pool.LeaseFilter{Target: target}
	before := m.dump()
	dry, _ := m.st.Revoke(m.time(), f, true, m.rng)
	if !slices.Equal(m.dump(), before) {
		t.Fatal("a dry run changed the state")
	}
	want := 0
	for _, acc := range m.live {
		if acc.target == target {
			want++
			m.end(acc, pool.EndRevoke)
		}
	}
	if n, first := m.st.Revoke(m.time(), f, false, m.rng); n != want || dry != want || len(first) != min(20, want) {
		t.Fatalf("revoked %d, dry %d, shown %d, live were %d", n, dry, len(first), want)
	}
}

// MoveSession sends a session on.
func (m *machine) MoveSession(t *rapid.T) {
	key := rapid.SampledFrom([]string{"s1", "s2"}).Draw(t, "session")
	_, known := m.st.Session(key)
	if _, ok := m.st.MoveSession(m.time(), key); ok != known {
		t.Fatalf("known %v, moved %v", known, ok)
	}
}

// checkSent wants a session that was sent on to get another proxy, and to be told.
func (m *machine) checkSent(t *rapid.T, sess *pool.Session, g *pool.Grant) {
	if !sess.Sent || m.st.ProxyByID(sess.ProxyID) == nil {
		return
	}
	if g.ID == sess.ProxyID && m.exits[g.ID] != pool.ExitTemplate {
		t.Fatalf("session %q got proxy %s again", sess.Key, g.ID)
	}
}

// ReleaseGroup ends a hold.
func (m *machine) ReleaseGroup(t *rapid.T) {
	for _, g := range m.st.Groups() {
		if _, ok := m.st.ReleaseGroup(m.time(), g.Name); !ok {
			t.Fatalf("group %q is not known", g.Name)
		}
	}
	for _, g := range m.st.Groups() {
		if g.HoldUntil > m.time() {
			t.Fatalf("group %q is held", g.Name)
		}
	}
}

func TestSessionsArePaged(t *testing.T) {
	st := pool.New("t", pool.DefaultPolicy(), judge.Rule)
	rng := rand.New(rand.NewPCG(1, 1))
	now := pool.At(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	var list []pool.Import
	for i := range 7 {
		list = append(list, importOf(i, 1))
	}
	st.Import(now, list)
	for i := range 7 {
		if _, err := st.Acquire(now, pool.AcquireParams{Target: fmt.Sprint("t", i), Worker: "w", Session: fmt.Sprint("s", i)}, rng); err != nil {
			t.Fatal(err)
		}
	}
	var keys []string
	f := pool.SessionFilter{Limit: 3}
	for more := true; more; {
		var page []pool.Session
		page, more = st.Sessions(now, f)
		for _, x := range page {
			keys = append(keys, x.Key)
		}
		f.After = keys[len(keys)-1]
	}
	if got := fmt.Sprint(keys); got != "[s0 s1 s2 s3 s4 s5 s6]" {
		t.Fatal(got)
	}
	x, _ := st.Session("s4")
	if page, more := st.Sessions(now, pool.SessionFilter{Proxy: &x.ProxyID, Limit: 3}); len(page) != 1 || more || page[0].Key != "s4" {
		t.Fatalf("of one proxy: %v, more %v", page, more)
	}
}
