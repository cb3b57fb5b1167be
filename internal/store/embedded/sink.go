package embedded

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/hostler-proxy/hostler/internal/pool"
)

// sink writes the changes of one pool with prepared statements.
type sink struct {
	db      *sqlite.Conn
	pool    int64
	name    string
	scratch []byte

	putProxy, putUse, putJudge, endLease    *sqlite.Stmt
	putPair, putTarget, putGroup, putWorker *sqlite.Stmt
	putSession, putLease, putFail           *sqlite.Stmt
	putTotal, putFinding                    *sqlite.Stmt
	dropProxy, dropUse, dropJudge           *sqlite.Stmt
	dropPair, dropTarget, dropWorker        *sqlite.Stmt
	dropSession, forget                     *sqlite.Stmt
}

var _ pool.Sink = (*sink)(nil)

func newSink(db *sqlite.Conn) (*sink, error) {
	s := &sink{db: db}
	for _, p := range []struct {
		to    **sqlite.Stmt
		query string
	}{
		{&s.putProxy, upsert("proxy", 19)},
		{&s.putUse, upsert("proxy_use", 14)},
		{&s.putJudge, upsert("proxy_judge", 19)},
		{&s.endLease, "UPDATE lease SET ended = ?2, kind = ?3, class = ?4, late = ?5 WHERE n = ?1"},
		{&s.putPair, upsert("pair", 19)},
		{&s.putTarget, upsert("target", 21)},
		{&s.putGroup, upsert("grp", 18)},
		{&s.putWorker, upsert("worker", 12)},
		{&s.putSession, upsert("session", 7)},
		{&s.putLease, upsert("lease", 29)},
		{&s.putFail, `INSERT INTO failure (pool, at, worker, target, proxy, lease, class, fault, phase, error, status, elapsed,
			fingerprint, url, method, attempt, final, reason, attempts, waited) VALUES (` + marks(20) + `)`},
		{&s.putFinding, `UPDATE failure SET fault = ?5 WHERE n > (SELECT coalesce(max(n), 0) - ` + strconv.Itoa(findingReach) + ` FROM failure)
			AND pool = ?1 AND at >= ?4 AND final = 0 AND (?2 = '' OR proxy = ?2) AND (?3 = '' OR target = ?3) AND class IN (` + doubtful() + `)`},
		{&s.putTotal, upsert("pool_total", 5)},
		{&s.dropProxy, "DELETE FROM proxy WHERE n = ?"},
		{&s.dropUse, "DELETE FROM proxy_use WHERE n = ?"},
		{&s.dropJudge, "DELETE FROM proxy_judge WHERE n = ?"},
		{&s.dropPair, "DELETE FROM pair WHERE n = ?"},
		{&s.dropTarget, "DELETE FROM target WHERE n = ?"},
		{&s.dropWorker, "DELETE FROM worker WHERE n = ?"},
		{&s.dropSession, "DELETE FROM session WHERE pool = ? AND key = ?"},
		{&s.forget, "DELETE FROM lease WHERE n = ?"},
	} {
		stmt, err := db.Prepare(p.query)
		if err != nil {
			return nil, fmt.Errorf("prepare %q: %w", p.query, err)
		}
		*p.to = stmt
	}
	return s, nil
}

func upsert(table string, columns int) string {
	return "INSERT OR REPLACE INTO " + table + " VALUES (" + marks(columns) + ")"
}

func marks(n int) string { return strings.TrimSuffix(strings.Repeat("?,", n), ",") }

// row binds the columns of one row in order.
type row struct {
	stmt *sqlite.Stmt
	i    int
}

func (r *row) int(values ...int64) *row {
	for _, v := range values {
		r.i++
		r.stmt.BindInt64(r.i, v)
	}
	return r
}

func (r *row) text(values ...string) *row {
	for _, v := range values {
		r.i++
		r.stmt.BindText(r.i, v)
	}
	return r
}

func (r *row) real(values ...float64) *row {
	for _, v := range values {
		r.i++
		r.stmt.BindFloat(r.i, v)
	}
	return r
}

func (r *row) blob(v []byte) *row {
	r.i++
	r.stmt.BindBytes(r.i, v)
	return r
}

func (r *row) null(n int) *row {
	for range n {
		r.i++
		r.stmt.BindNull(r.i)
	}
	return r
}

func (r *row) run() error {
	_, err := r.stmt.Step()
	if reset := r.stmt.Reset(); err == nil {
		err = reset
	}
	return err
}

func (s *sink) row(stmt *sqlite.Stmt) *row { return (&row{stmt: stmt}).int(s.pool) }

// poolShift is where the pool's number stands in a row's number: 2^44 leases a
// pool, and half a million pools.
const poolShift = 44

// numbered begins a row whose key is a number of the pool.
func (s *sink) numbered(stmt *sqlite.Stmt, n int64) *row {
	return (&row{stmt: stmt}).int(s.pool<<poolShift | n)
}

// splitNumber takes a row's number apart.
func splitNumber(n int64) (poolID, number int64) { return n >> poolShift, n & (1<<poolShift - 1) }

// pairNumber puts the target above the proxy, of which a pool has at most 2^22:
// pairs of a target stand together.
func pairNumber(p pool.PairName) int64 { return int64(p.Target)<<22 | int64(p.Proxy) }

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func (s *sink) PutProxy(p *pool.Proxy, parts pool.Parts) error {
	steps := []struct {
		on  bool
		put func(*pool.Proxy) error
	}{{parts.Spec, s.spec}, {parts.Mech || parts.Windows, s.use}, {parts.Judge, s.judge}}
	for _, step := range steps {
		if step.on {
			if err := step.put(p); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *sink) spec(p *pool.Proxy) error {
	x, a := p.Spec, &p.Admin
	return s.numbered(s.putProxy, int64(p.Number())).
		text(p.ID.String(), string(x.Scheme), x.Host).int(int64(x.Port)).text(x.Username, x.Password.Reveal()).
		text(x.Region, x.Group, x.Source, string(x.Labels), x.Exit.String()).
		int(int64(x.Cap), int64(x.ExpiresAt), int64(x.AddedAt)).
		text(a.State.String()).int(int64(a.Until)).text(a.Reason).int(bit(a.Remove)).run()
}

func (s *sink) use(p *pool.Proxy) error {
	m, q := &p.Mech, &p.Quality
	r := s.numbered(s.putUse, int64(p.Number())).int(m.Uses, m.Fence, int64(m.LastStart), int64(m.LastEnd)).
		real(float64(q.Score), float64(q.Idle)).int(int64(q.ScoreUntil), int64(q.GatedUntil)).text(q.LastClass.String()).
		int(int64(q.LastReport), p.Bytes)
	s.scratch = p.Recent.AppendBinary(s.scratch[:0])
	r.blob(s.scratch)
	return r.blob(s.windows(&p.Windows)).run()
}

func (s *sink) windows(w *pool.Windows) []byte {
	s.scratch = w.AppendBinary(s.scratch[:0])
	return s.scratch
}

func (s *sink) judge(p *pool.Proxy) error {
	j := &p.Judge
	r := s.numbered(s.putJudge, int64(p.Number())).int(j.Version).text(j.State.String()).
		int(int64(j.Streak), int64(j.Level), int64(j.LevelAt), int64(j.Trials), int64(j.Suspensions),
			int64(j.Orphans), bit(j.OrphanMany), int64(j.OrphanWorker)).
		int(slots(&j.Slots)...).int(j.FailFence, int64(j.Earned), int64(j.EarnedOK))
	if p.Doubt == nil {
		return r.null(1).run()
	}
	return r.text(asJSON(p.Doubt)).run()
}

// asJSON writes a record that has no column of its own for each field.
func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("a record of plain fields cannot be written as JSON: " + err.Error())
	}
	return string(b)
}

func slots(s *pool.Slots) []int64 {
	return []int64{int64(s[pool.CauseFailure]), int64(s[pool.CauseRate]), int64(s[pool.CausePolicy]), int64(s[pool.CauseGeo])}
}

func (s *sink) PutPair(name pool.PairName, p *pool.Pair) error {
	r := s.numbered(s.putPair, pairNumber(name)).int(int64(name.Target), int64(name.Proxy), int64(p.NextOK), int64(p.Epoch), bit(p.Failed))
	c := p.Charge
	if c == nil {
		return r.null(13).run()
	}
	return r.int(c.Version).int(slots(&c.Slots)...).int(int64(c.Streak), int64(c.Level), int64(c.LevelAt),
		int64(c.RateSteps), c.FailFence, c.RateFence, int64(c.Touched), int64(c.Provisional)).run()
}

func (s *sink) PutTarget(t *pool.Target) error {
	v := &t.Votes
	return s.numbered(s.putTarget, int64(t.Number())).text(t.Name).
		int(int64(t.LastUsed), int64(v.Epoch), int64(v.OK), int64(v.Failed), int64(v.ByLease)).int(spend(&t.Spend)...).
		text(asJSON(&t.Judge), classCounts(&t.Classes)).blob(s.windows(&t.Windows)).run()
}

func (s *sink) PutGroup(g *pool.Group) error {
	return s.row(s.putGroup).text(g.Name).int(int64(g.HoldUntil), int64(g.HoldSteps)).int(spend(&g.Spend)...).
		text(asJSON(&g.Circuit), classCounts(&g.Classes)).blob(s.windows(&g.Windows)).run()
}

func spend(s *pool.Spend) []int64 {
	u := func(u *pool.Usage) []int64 { return []int64{u.Requests, u.Bytes, int64(u.Cost)} }
	return slices.Concat(u(&s.Total), []int64{int64(s.Day)}, u(&s.InDay), []int64{int64(s.Month)}, u(&s.InMonth))
}

// classCounts is the counts by class, those that are not 0, as JSON.
func classCounts(counts *[pool.NumClasses]int64) string {
	b := []byte{'{'}
	for class, n := range counts {
		if n == 0 {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, "%q:%d", pool.Class(class).String(), n)
	}
	return string(append(b, '}'))
}

func (s *sink) PutWorker(w *pool.Worker) error {
	return s.numbered(s.putWorker, int64(w.Number())).text(w.Name, w.Tenant).
		int(int64(w.Concurrency), int64(w.LastSeen), w.NoteSeq, w.Granted, w.Reported, w.Released, w.Expired, w.LastLease).
		blob(s.windows(&w.Windows)).run()
}

func (s *sink) PutSession(x *pool.Session) error {
	return s.row(s.putSession).text(x.Key).int(int64(x.Proxy)).text(x.ProxyID.String(), x.Child).
		int(int64(x.LastUsed), bit(x.Gone())+bit(x.Sent)).run()
}

// gapMillis writes a time that below 0 is not known.
func gapMillis(d time.Duration) int64 {
	if d < 0 {
		return -1
	}
	return d.Milliseconds()
}

func keyBytes(k pool.Key) []byte {
	b := binary.BigEndian.AppendUint64(nil, k[0])
	return binary.BigEndian.AppendUint64(b, k[1])
}

func (s *sink) PutLease(l *pool.Lease) error {
	if !l.Live() && l.Stored() {
		return s.numbered(s.endLease, l.N).int(int64(l.Ended)).text(l.Kind.String(), l.Class.String()).int(bit(l.Late)).run()
	}
	m := l.More
	r := s.numbered(s.putLease, l.N).blob(keyBytes(l.Key)).int(int64(l.Proxy), int64(l.Target), int64(l.Worker)).
		int(int64(l.Granted), int64(l.Deadline), int64(l.Hard), l.TTL.Milliseconds(), l.Fence, int64(l.RestEnd), gapMillis(l.Gap), int64(l.Band)).
		int(int64(l.Ended))
	if l.Live() {
		r.null(2)
	} else {
		r.text(l.Kind.String(), l.Class.String())
	}
	r.int(bit(l.Late)).text(m.CallID, m.Tenant).int(int64(m.Digest)).text(m.Session, m.Child).int(bit(m.Moved))
	if m.Moved {
		r.text(m.Previous.String())
	} else {
		r.text("")
	}
	return r.int(bit(m.Relaxed)).text(m.Request.Fingerprint, m.Request.URL, m.Request.Method).int(int64(m.Request.Attempt)).run()
}

func (s *sink) Forget(n int64) error { return s.numbered(s.forget, n).run() }

func (s *sink) PutFailure(f *pool.Failure) error {
	attempts, err := json.Marshal(f.Attempts)
	if err != nil {
		return err
	}
	r := &row{stmt: s.putFail}
	return r.text(s.name).int(int64(f.At)).text(f.Worker, f.Target, f.Proxy, f.Lease, f.Class.String(), f.Fault.String(), f.Phase, f.Error).
		int(int64(f.Status), f.Elapsed.Milliseconds()).text(f.Request.Fingerprint, f.Request.URL, f.Request.Method).
		int(int64(f.Request.Attempt), bit(f.Final)).text(f.Reason, string(attempts)).int(f.Waited.Milliseconds()).run()
}

// findingReach is how many of the newest failures a finding looks at.
const findingReach = 100_000

func (s *sink) PutFinding(f *pool.Finding) error {
	return (&row{stmt: s.putFinding}).text(s.name, f.Proxy, f.Target).int(int64(f.Since)).text(f.Fault.String()).run()
}

// doubtful lists the classes that a finding rewrites.
func doubtful() string {
	var list []string
	for c := range pool.NumClasses {
		if c.Doubtful() {
			list = append(list, "'"+c.String()+"'")
		}
	}
	return strings.Join(list, ", ")
}

func (s *sink) RemoveProxy(n uint32) error {
	for _, stmt := range []*sqlite.Stmt{s.dropProxy, s.dropUse, s.dropJudge} {
		if err := s.numbered(stmt, int64(n)).run(); err != nil {
			return err
		}
	}
	return nil
}

func (s *sink) RemovePair(p pool.PairName) error {
	return s.numbered(s.dropPair, pairNumber(p)).run()
}

func (s *sink) RemoveTarget(n uint32) error { return s.numbered(s.dropTarget, int64(n)).run() }

func (s *sink) RemoveWorker(n uint32) error { return s.numbered(s.dropWorker, int64(n)).run() }

func (s *sink) RemoveSession(key string) error { return s.row(s.dropSession).text(key).run() }

// putTotals writes the pool's counters and its newest time.
func (s *sink) putTotals(p *keptPool) error {
	totals, err := json.Marshal(p.state.Totals())
	if err != nil {
		return err
	}
	return s.row(s.putTotal).int(int64(p.state.Now())).real(p.state.Credit()).text(string(totals), asJSON(p.state.Offline())).run()
}
