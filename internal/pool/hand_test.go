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

// TestSessionsArePaged: the pages together are all sessions in order, whatever
// their size.
func TestSessionsArePaged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		st := pool.New("t", pool.DefaultPolicy(), judge.Rule)
		rng := rand.New(rand.NewPCG(1, 1))
		now := pool.At(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		n := rapid.IntRange(0, 200).Draw(t, "sessions")
		var list []pool.Import
		for i := range n {
			list = append(list, importOf(i, 1))
		}
		st.Import(now, list)
		var want []string
		for i := range n {
			key := fmt.Sprint("s", i*7919%1000)
			want = append(want, key)
			if _, err := st.Acquire(now, pool.AcquireParams{Target: fmt.Sprint("t", i), Worker: "w", Session: key}, rng); err != nil {
				t.Fatal(err)
			}
		}
		slices.Sort(want)
		var got []string
		f := pool.SessionFilter{Limit: rapid.IntRange(1, 60).Draw(t, "limit")}
		for more := true; more; {
			var page []pool.Session
			page, more = st.Sessions(now, f)
			if len(page) > f.Limit || more && len(page) < f.Limit {
				t.Fatalf("a page of %d, more %v", len(page), more)
			}
			for _, x := range page {
				got = append(got, x.Key)
				f.After = x.Key
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		if n == 0 {
			return
		}
		x, _ := st.Session(want[n/2])
		if page, more := st.Sessions(now, pool.SessionFilter{Proxy: &x.ProxyID, Limit: 3}); len(page) != 1 || more || page[0].Key != x.Key {
			t.Fatalf("of one proxy: %v, more %v", page, more)
		}
	})
}
