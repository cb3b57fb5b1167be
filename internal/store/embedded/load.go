package embedded

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/proxy"
)

// load builds all pools from the file. Leases get one ttl of grace: while the
// daemon was away nobody could send heartbeats.
func (s *Store) load() error {
	pools := map[string]*keptPool{}
	byID := map[int64]*keptPool{}
	err := s.each("SELECT * FROM pool", func(r *sqlite.Stmt) error {
		p, name, err := s.loadPool(r)
		pools[name], byID[r.GetInt64("id")] = p, p
		return err
	})
	if err != nil {
		return err
	}
	l := &loader{byID: byID, proxies: map[proxyName]*pool.Proxy{}}
	steps := []struct {
		query string
		row   func(*sqlite.Stmt) error
	}{
		{"SELECT * FROM pool_total", l.totals},
		{"SELECT * FROM proxy", l.proxy},
		{"SELECT * FROM proxy_use", l.use},
		{"SELECT * FROM proxy_judge", l.judge},
	}
	for _, step := range steps {
		if err := s.each(step.query, step.row); err != nil {
			return err
		}
	}
	if err := l.enterProxies(); err != nil {
		return err
	}
	for _, step := range []struct {
		query string
		row   func(*sqlite.Stmt) error
	}{
		{"SELECT * FROM grp", l.group},
		{"SELECT * FROM target", l.target},
		{"SELECT * FROM worker", l.worker},
		{"SELECT * FROM pair", l.pair},
		{"SELECT * FROM session ORDER BY last_used", l.session},
		{"SELECT * FROM lease WHERE ended = 0 ORDER BY n", l.lease},
		{"SELECT * FROM lease WHERE ended > 0 ORDER BY ended, n", l.lease},
	} {
		if err := s.each(step.query, step.row); err != nil {
			return err
		}
	}
	now := s.o.Clock()
	for _, p := range pools {
		p.state.Loaded(now)
		p.state.Grace(now.Add(p.state.Policy().TTL))
	}
	s.pools = pools
	return nil
}

func (s *Store) each(query string, row func(*sqlite.Stmt) error) error {
	return sqlitex.ExecuteTransient(s.db, query, &sqlitex.ExecOptions{ResultFunc: row})
}

func (s *Store) loadPool(r *sqlite.Stmt) (*keptPool, string, error) {
	name := r.GetText("name")
	p := &keptPool{id: r.GetInt64("id")}
	policy := pool.DefaultPolicy()
	for column, into := range map[string]any{"policy": &policy, "file": &p.record.File, "overrides": &p.record.Overrides} {
		if err := json.Unmarshal([]byte(r.GetText(column)), into); err != nil {
			return nil, "", fmt.Errorf("pool %q: column %s is damaged: %w", name, column, err)
		}
	}
	p.record.Policy = policy
	p.state = pool.New(name, policy, s.o.Judge)
	p.state.Collect() // what is dropped while loading must go from the file too
	return p, name, nil
}

// proxyName is a proxy's number, the pool's included.
type proxyName = int64

// loader puts rows back into the states. A proxy's record comes from three
// tables, so it is gathered first and entered whole.
type loader struct {
	byID    map[int64]*keptPool
	proxies map[proxyName]*pool.Proxy
}

func (l *loader) state(r *sqlite.Stmt) (*pool.State, error) {
	return l.inPool(r.GetInt64("pool"))
}

func (l *loader) inPool(id int64) (*pool.State, error) {
	p, ok := l.byID[id]
	if !ok {
		return nil, fmt.Errorf("a row names pool %d, which does not exist", id)
	}
	return p.state, nil
}

// numbered gives the pool of a row with a number, and the number inside it.
func (l *loader) numbered(r *sqlite.Stmt) (*pool.State, int64, error) {
	id, n := splitNumber(r.GetInt64("n"))
	st, err := l.inPool(id)
	return st, n, err
}

func (l *loader) totals(r *sqlite.Stmt) error {
	st, err := l.state(r)
	if err != nil {
		return err
	}
	var t pool.Totals
	if err := json.Unmarshal([]byte(r.GetText("totals")), &t); err != nil {
		return fmt.Errorf("the totals are damaged: %w", err)
	}
	var offline pool.Circuit
	if err := json.Unmarshal([]byte(r.GetText("offline")), &offline); err != nil {
		return fmt.Errorf("the pool's circuit is damaged: %w", err)
	}
	st.LoadTotals(at(r, "now"), t, r.GetFloat("credit"), offline)
	return nil
}

func at(r *sqlite.Stmt, column string) pool.Time { return pool.Time(r.GetInt64(column)) }

func (l *loader) proxy(r *sqlite.Stmt) error {
	id, err := proxy.ParseID(r.GetText("id"))
	if err != nil {
		return fmt.Errorf("a proxy's id is damaged: %w", err)
	}
	exit, err := pool.ParseExit(r.GetText("exit"))
	if err != nil {
		return err
	}
	ordered, err := pool.ParseStatus(r.GetText("ordered"))
	if err != nil {
		return err
	}
	l.proxies[r.GetInt64("n")] = &pool.Proxy{
		ID: id,
		Spec: &pool.Spec{
			Proxy: proxy.Proxy{
				Scheme: proxy.Scheme(r.GetText("scheme")), Host: r.GetText("host"), Port: uint16(r.GetInt64("port")),
				Username: r.GetText("username"), Password: proxy.Secret(r.GetText("password")),
			},
			Region: r.GetText("region"), Group: r.GetText("grp"), Source: r.GetText("source"),
			Labels: pool.Labels(r.GetText("labels")), Exit: exit, Cap: int(r.GetInt64("cap")),
			ExpiresAt: at(r, "expires_at"), AddedAt: at(r, "added_at"),
		},
		Admin: pool.Admin{
			State: ordered, Until: at(r, "ordered_until"), Reason: r.GetText("ordered_reason"), Remove: r.GetInt64("removing") != 0,
		},
	}
	return nil
}

// record finds the proxy that a row of a second table speaks of.
func (l *loader) record(r *sqlite.Stmt) (*pool.Proxy, error) {
	if p := l.proxies[r.GetInt64("n")]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("a row speaks of proxy number %d, which does not exist", r.GetInt64("n"))
}

func (l *loader) use(r *sqlite.Stmt) error {
	p, err := l.record(r)
	if err != nil {
		return err
	}
	class, err := pool.ParseClass(r.GetText("last_class"))
	if err != nil {
		return err
	}
	p.Mech.Uses, p.Mech.Fence = r.GetInt64("uses"), r.GetInt64("fence")
	p.Mech.LastStart, p.Mech.LastEnd = at(r, "last_start"), at(r, "last_end")
	p.Quality = pool.Quality{
		Score: float32(r.GetFloat("score")), Idle: float32(r.GetFloat("idle_score")), ScoreUntil: at(r, "score_until"),
		GatedUntil: at(r, "gated_until"), LastClass: class, LastReport: at(r, "last_report"),
	}
	p.Bytes = r.GetInt64("bytes")
	if err := p.Recent.UnmarshalBinary(blob(r, "recent")); err != nil {
		return err
	}
	return p.Windows.UnmarshalBinary(blob(r, "windows"))
}

func blob(r *sqlite.Stmt, column string) []byte {
	b := make([]byte, r.GetLen(column))
	r.GetBytes(column, b)
	return b
}

func (l *loader) judge(r *sqlite.Stmt) error {
	p, err := l.record(r)
	if err != nil {
		return err
	}
	state, err := pool.ParseStatus(r.GetText("state"))
	if err != nil {
		return err
	}
	num := r.GetInt64
	p.Judge = pool.Judgement{
		Version: num("version"), State: state, Streak: uint8(num("streak")), Level: uint8(num("level")),
		LevelAt: at(r, "level_at"), Trials: uint8(num("trials")), Suspensions: uint8(num("suspensions")),
		Orphans: uint8(num("orphans")), OrphanMany: num("orphan_many") != 0, OrphanWorker: uint32(num("orphan_worker")),
		Slots: readSlots(r), FailFence: num("fail_fence"),
		Earned: int32(num("earned")), EarnedOK: int32(num("earned_ok")),
	}
	if r.IsNull("doubt") {
		return nil
	}
	p.Doubt = &pool.Doubt{}
	if err := json.Unmarshal([]byte(r.GetText("doubt")), p.Doubt); err != nil {
		return fmt.Errorf("the doubts about proxy %s are damaged: %w", p.ID, err)
	}
	return nil
}

func readSlots(r *sqlite.Stmt) (s pool.Slots) {
	s[pool.CauseFailure], s[pool.CauseRate] = at(r, "until_failure"), at(r, "until_rate")
	s[pool.CausePolicy], s[pool.CauseGeo] = at(r, "until_policy"), at(r, "until_geo")
	return s
}

func (l *loader) enterProxies() error {
	for name, p := range l.proxies {
		id, n := splitNumber(name)
		st, err := l.inPool(id)
		if err != nil {
			return err
		}
		if err := st.LoadProxy(uint32(n), *p); err != nil {
			return err
		}
	}
	l.proxies = nil
	return nil
}

func (l *loader) group(r *sqlite.Stmt) error {
	st, err := l.state(r)
	if err != nil {
		return err
	}
	g := pool.Group{
		Name: r.GetText("name"), HoldUntil: at(r, "hold_until"), HoldSteps: uint8(r.GetInt64("hold_steps")), Spend: readSpend(r),
	}
	if err := json.Unmarshal([]byte(r.GetText("circuit")), &g.Circuit); err != nil {
		return fmt.Errorf("the circuit of group %q is damaged: %w", g.Name, err)
	}
	if err := readCounts(r, &g.Classes, &g.Windows); err != nil {
		return err
	}
	st.LoadGroup(g)
	return nil
}

func readSpend(r *sqlite.Stmt) pool.Spend {
	usage := func(prefix string) pool.Usage {
		return pool.Usage{
			Requests: r.GetInt64(prefix + "requests"), Bytes: r.GetInt64(prefix + "bytes"), Cost: pool.Money(r.GetInt64(prefix + "cost")),
		}
	}
	return pool.Spend{
		Total: usage(""), InDay: usage("day_"), InMonth: usage("month_"), Day: int32(r.GetInt64("day")), Month: int32(r.GetInt64("month")),
	}
}

func readCounts(r *sqlite.Stmt, classes *[pool.NumClasses]int64, windows *pool.Windows) error {
	named := map[string]int64{}
	if err := json.Unmarshal([]byte(r.GetText("classes")), &named); err != nil {
		return fmt.Errorf("the counts by class are damaged: %w", err)
	}
	for name, n := range named {
		class, err := pool.ParseClass(name)
		if err != nil {
			return err
		}
		classes[class] = n
	}
	return windows.UnmarshalBinary(blob(r, "windows"))
}

func (l *loader) target(r *sqlite.Stmt) error {
	st, n, err := l.numbered(r)
	if err != nil {
		return err
	}
	t := pool.Target{Name: r.GetText("name"), LastUsed: at(r, "last_used"), Spend: readSpend(r), Votes: pool.Votes{
		Epoch: uint32(r.GetInt64("epoch")), OK: int32(r.GetInt64("votes_ok")), Failed: int32(r.GetInt64("votes_failed")),
		ByLease: int32(r.GetInt64("votes_leases")),
	}}
	if err := json.Unmarshal([]byte(r.GetText("judge")), &t.Judge); err != nil {
		return fmt.Errorf("the assessment of target %q is damaged: %w", t.Name, err)
	}
	if err := readCounts(r, &t.Classes, &t.Windows); err != nil {
		return err
	}
	return st.LoadTarget(uint32(n), t)
}

func (l *loader) worker(r *sqlite.Stmt) error {
	st, n, err := l.numbered(r)
	if err != nil {
		return err
	}
	num := r.GetInt64
	w := pool.Worker{
		Name: r.GetText("name"), Tenant: r.GetText("tenant"), Concurrency: int(num("concurrency")), LastSeen: at(r, "last_seen"),
		NoteSeq: num("note_seq"), Granted: num("granted"), Reported: num("reported"), Released: num("released"), Expired: num("expired"), LastLease: num("last_lease"),
	}
	if err := w.Windows.UnmarshalBinary(blob(r, "windows")); err != nil {
		return err
	}
	return st.LoadWorker(uint32(n), w)
}

func (l *loader) pair(r *sqlite.Stmt) error {
	st, _, err := l.numbered(r)
	if err != nil {
		return err
	}
	num := r.GetInt64
	p := pool.Pair{NextOK: at(r, "next_ok"), Epoch: uint32(num("epoch")), Failed: num("failed") != 0}
	if !r.IsNull("version") {
		p.Charge = &pool.Charge{
			Version: num("version"), Slots: readSlots(r), Streak: uint8(num("streak")), Level: uint8(num("level")),
			LevelAt: at(r, "level_at"), RateSteps: uint8(num("rate_steps")), FailFence: num("fail_fence"),
			RateFence: num("rate_fence"), Touched: at(r, "touched"), Provisional: uint16(num("provisional")),
		}
	}
	return st.LoadPair(pool.PairName{Proxy: uint32(num("proxy")), Target: uint32(num("target"))}, p)
}

func (l *loader) session(r *sqlite.Stmt) error {
	st, err := l.state(r)
	if err != nil {
		return err
	}
	id, err := proxy.ParseID(r.GetText("proxy_id"))
	if err != nil {
		return err
	}
	return st.LoadSession(pool.Session{
		Key: r.GetText("key"), Proxy: uint32(r.GetInt64("proxy")), ProxyID: id, Child: r.GetText("child"), LastUsed: at(r, "last_used"),
		Sent: r.GetInt64("gone") == 2,
	}, r.GetInt64("gone") != 0)
}

func readKey(r *sqlite.Stmt) (k pool.Key, err error) {
	b := blob(r, "key")
	if len(b) != 16 {
		return k, fmt.Errorf("a lease's key has %d bytes instead of 16", len(b))
	}
	return pool.Key{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}, nil
}

// lease puts a lease back, live or ended.
func (l *loader) lease(r *sqlite.Stmt) error {
	st, n, err := l.numbered(r)
	if err != nil {
		return err
	}
	num := r.GetInt64
	lease := pool.Lease{
		N: n, Proxy: uint32(num("proxy")), Target: uint32(num("target")), Worker: uint32(num("worker")),
		Granted: at(r, "granted"), Deadline: at(r, "deadline"), Hard: at(r, "hard"), RestEnd: at(r, "rest_end"),
		TTL: millis(num("ttl")), Gap: gap(num("gap")), Fence: num("fence"), Band: pool.Band(num("band")), Ended: at(r, "ended"), Late: num("late") != 0,
	}
	if lease.Key, err = readKey(r); err != nil {
		return err
	}
	if lease.More, err = readMore(r); err != nil {
		return err
	}
	if lease.Live() {
		return st.LoadLease(lease)
	}
	if lease.Kind, err = pool.ParseEndKind(r.GetText("kind")); err != nil {
		return err
	}
	if lease.Class, err = pool.ParseClass(r.GetText("class")); err != nil {
		return err
	}
	st.LoadEnded(lease)
	return nil
}

// gap reads a time that below 0 is not known.
func gap(n int64) time.Duration {
	if n < 0 {
		return -1
	}
	return millis(n)
}

func readMore(r *sqlite.Stmt) (*pool.More, error) {
	text := r.GetText
	more := &pool.More{
		CallID: text("call_id"), Tenant: text("tenant"), Digest: uint64(r.GetInt64("digest")), Session: text("session"), Child: text("child"),
		Moved: r.GetInt64("moved") != 0, Relaxed: r.GetInt64("relaxed") != 0,
		Request: pool.Request{
			Fingerprint: text("fingerprint"), URL: text("url"), Method: text("method"), Attempt: int(r.GetInt64("attempt")),
		},
	}
	var err error
	if previous := text("previous"); previous != "" {
		more.Previous, err = proxy.ParseID(previous)
	}
	return more, err
}
