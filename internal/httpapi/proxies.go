package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hostler-proxy/hostler/internal/keeper"
	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/proxy"
	"github.com/hostler-proxy/hostler/internal/store"
)

// windowBody is W of the contract: rates are null when nothing was counted.
type windowBody struct {
	OK             uint32   `json:"ok"`
	Total          uint32   `json:"total"`
	Rate           *float64 `json:"rate"`
	AttributedRate *float64 `json:"attributed_rate"`
	Valid          uint32   `json:"valid"`
	Invalid        uint32   `json:"invalid"`
	ValidRate      *float64 `json:"valid_rate"`
	Timeouts       uint32   `json:"timeouts"`
	S403           uint32   `json:"s403"`
	S429           uint32   `json:"s429"`
	P50MS          *int64   `json:"p50_ms"`
}

func share(part, whole uint32) *float64 {
	if whole == 0 {
		return nil
	}
	rate := float64(part) / float64(whole)
	return &rate
}

func windowOf(c pool.Counts) windowBody {
	return windowBody{
		OK: c.OK, Total: c.Total, Rate: share(c.OK, c.Total), AttributedRate: share(c.OK, c.OK+c.Blamed),
		Valid: c.Valid, Invalid: c.Invalid, ValidRate: share(c.Valid, c.Valid+c.Invalid),
		Timeouts: c.Timeouts, S403: c.S403, S429: c.S429,
	}
}

type windowsBody struct {
	Ten  windowBody `json:"10m"`
	Hour windowBody `json:"1h"`
	Day  windowBody `json:"day"`
}

func windowsOf(w *pool.Windows, now pool.Time, day int32) windowsBody {
	return windowsBody{windowOf(w.TenMinutes(now)), windowOf(w.Hour(now)), windowOf(w.Day(now, day))}
}

type intervalBody struct {
	Last *int64 `json:"last"`
	P50  *int64 `json:"p50"`
}

type proxyBody struct {
	ID         string            `json:"id"`
	Scheme     string            `json:"scheme"`
	Host       string            `json:"host"`
	Port       uint16            `json:"port"`
	Username   string            `json:"username"`
	Region     string            `json:"region"`
	Labels     map[string]string `json:"labels"`
	Group      string            `json:"group"`
	Source     string            `json:"source"`
	Exit       string            `json:"exit"`
	Cap        int               `json:"cap"`
	EarnedCap  int               `json:"earned_cap"`
	State      string            `json:"state"`
	Reason     string            `json:"reason"`
	Until      timestamp         `json:"until"`
	Streak     int               `json:"streak"`
	InUse      int               `json:"in_use"`
	Uses       int64             `json:"uses"`
	Bytes      int64             `json:"bytes"`
	ExpiresAt  timestamp         `json:"expires_at"`
	Score      float64           `json:"score"`
	GatedUntil timestamp         `json:"gated_until"`
	Windows    windowsBody       `json:"windows"`
	LastClass  string            `json:"last_class"`
	LastUsedAt timestamp         `json:"last_used_at"`
	IntervalMS intervalBody      `json:"interval_ms"`
	HoldMSP50  *int64            `json:"hold_ms_p50"`
}

func millisOf(d time.Duration, ok bool) *int64 {
	if !ok {
		return nil
	}
	n := d.Milliseconds()
	return &n
}

func proxyOf(v *pool.ProxyView, now pool.Time) proxyBody {
	b := proxyBody{
		ID: v.ID.String(), Scheme: string(v.Spec.Scheme), Host: v.Spec.Host, Port: v.Spec.Port, Username: v.Spec.Username,
		Region: v.Spec.Region, Labels: v.Spec.Labels.Map(), Group: v.Spec.Group, Source: v.Spec.Source, Exit: v.Spec.Exit.String(),
		Cap: v.Cap, EarnedCap: v.CapNow, State: v.Status.String(), Reason: reasonOf(v), Until: stamp(v.Until),
		Streak: int(v.Judge.Streak), InUse: v.Mech.InUse, Uses: v.Mech.Uses, Bytes: v.Bytes, ExpiresAt: stamp(v.Spec.ExpiresAt),
		Score: float64(v.Quality.Score), Windows: windowsBody{windowOf(v.Ten), windowOf(v.Hour), windowOf(v.Today)},
		LastUsedAt: stamp(v.Mech.LastStart),
	}
	if v.Quality.GatedUntil > now {
		b.GatedUntil = stamp(v.Quality.GatedUntil)
	}
	if v.Quality.LastClass != pool.ClassNone {
		b.LastClass = v.Quality.LastClass.String()
	}
	b.Windows.Ten.P50MS = millisOf(v.Recent.P50(pool.Latency, now, 10*time.Minute))
	b.Windows.Hour.P50MS = millisOf(v.Recent.P50(pool.Latency, now, time.Hour))
	b.Windows.Day.P50MS = millisOf(v.Recent.P50(pool.Latency, now, 24*time.Hour))
	b.IntervalMS.Last = millisOf(v.Recent.Last(pool.Interval))
	b.IntervalMS.P50 = millisOf(v.Recent.P50(pool.Interval, now, time.Hour))
	b.HoldMSP50 = millisOf(v.Recent.P50(pool.Hold, now, time.Hour))
	return b
}

// reasonOf says in a word why the proxy is in its state.
func reasonOf(v *pool.ProxyView) string {
	switch v.Status {
	case pool.StatusCooling, pool.StatusSuspended:
		return v.Cause.String()
	case pool.StatusDraining, pool.StatusDisabled:
		return v.Admin.Reason
	case pool.StatusExpired:
		return "expired"
	default:
		return ""
	}
}

// onlyQuery refuses parameters that a call does not have.
func onlyQuery(q url.Values, known ...string) error {
	for name := range q {
		if !slices.Contains(known, name) {
			return invalid(name, "is not a parameter of this call; known are "+strings.Join(known, ", "))
		}
	}
	return nil
}

func poolOf(q url.Values) string {
	if name := q.Get("pool"); name != "" {
		return name
	}
	return keeper.DefaultPool
}

// filterOf reads what selects proxies.
func filterOf(q url.Values) (pool.Filter, error) {
	f := pool.Filter{Region: q.Get("region"), Group: q.Get("group"), Source: q.Get("source"), View: q.Get("view")}
	if text := q.Get("state"); text != "" {
		status, err := pool.ParseStatus(text)
		if err != nil {
			return f, invalid("state", err.Error())
		}
		f.Status = &status
	}
	if !slices.Contains([]string{"", "ready", "leased", "full"}, f.View) {
		return f, invalid("view", "must be ready, leased or full")
	}
	if text := q.Get("label"); text != "" {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return f, invalid("label", "must be key=value")
		}
		f.Label = [2]string{key, value}
	}
	return f, nil
}

func limitOf(q url.Values, usual, most int) (int, error) {
	text := q.Get("limit")
	if text == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, invalid("limit", fmt.Sprintf("must be 1 to %d", most))
	}
	return n, nil
}

func cursorOf(q url.Values) (int64, error) {
	text := q.Get("cursor")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 36, 64)
	if err != nil || n < 0 {
		return 0, invalid("cursor", "is not one that this call gave")
	}
	return n, nil
}

func cursor(n int64) string { return strconv.FormatInt(n, 36) }

func (s *Server) listProxies(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	if err := onlyQuery(q, "pool", "state", "view", "region", "label", "group", "source", "sort", "limit", "cursor"); err != nil {
		return err
	}
	filter, err := filterOf(q)
	if err != nil {
		return err
	}
	limit, err := limitOf(q, 100, 1000)
	if err != nil {
		return err
	}
	offset, err := cursorOf(q)
	if err != nil {
		return err
	}
	if !pool.KnownSort(q.Get("sort")) {
		return invalid("sort", "must be added, score, last_used, in_use, streak or uses")
	}
	res, err := s.store.Proxies(r.Context(), store.ProxiesParams{
		Pool: poolOf(q), Filter: filter, Sort: q.Get("sort"), Offset: int(offset), Limit: limit,
	})
	if err != nil {
		return err
	}
	answer := struct {
		Proxies []proxyBody `json:"proxies"`
		Cursor  string      `json:"cursor"`
	}{Proxies: []proxyBody{}}
	for i := range res.Proxies {
		answer.Proxies = append(answer.Proxies, proxyOf(&res.Proxies[i], res.Now))
	}
	if res.More {
		answer.Cursor = cursor(offset + int64(limit))
	}
	return writeJSON(w, http.StatusOK, answer)
}

func (s *Server) proxyByID(r *http.Request) (store.ProxyResult, error) {
	id, err := proxy.ParseID(r.PathValue("id"))
	if err != nil {
		return store.ProxyResult{}, store.ErrNoProxy
	}
	return s.store.Proxy(r.Context(), poolOf(r.URL.Query()), id)
}

func (s *Server) getProxy(w http.ResponseWriter, r *http.Request) error {
	if err := onlyQuery(r.URL.Query(), "pool"); err != nil {
		return err
	}
	res, err := s.proxyByID(r)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, proxyOf(&res.Proxy, res.Now))
}

type slotBody struct {
	Cause string    `json:"cause"`
	Until timestamp `json:"until"`
}

func slotsOf(slots pool.Slots, now pool.Time) []slotBody {
	list := []slotBody{}
	for cause, until := range slots {
		if until > now {
			list = append(list, slotBody{pool.Cause(cause).String(), stamp(until)})
		}
	}
	return list
}

type pairBody struct {
	Target      string     `json:"target"`
	NextOKAt    timestamp  `json:"next_ok_at"`
	Holds       []slotBody `json:"holds"`
	Streak      int        `json:"streak"`
	Provisional int        `json:"provisional"`
}

// why says what keeps a proxy where it is: its record, its rests, its pairs and
// its last failures.
func (s *Server) why(w http.ResponseWriter, r *http.Request) error {
	if err := onlyQuery(r.URL.Query(), "pool"); err != nil {
		return err
	}
	res, err := s.proxyByID(r)
	if err != nil {
		return err
	}
	failures, err := s.store.Failures(r.Context(), store.FailureQuery{
		Pool: poolOf(r.URL.Query()), Proxy: res.Proxy.ID.String(), Limit: 8,
	})
	if err != nil {
		return err
	}
	answer := struct {
		Proxy    proxyBody     `json:"proxy"`
		Because  string        `json:"because"`
		Holds    []slotBody    `json:"holds"`
		Pairs    []pairBody    `json:"pairs"`
		Failures []failureBody `json:"failures"`
	}{
		Proxy: proxyOf(&res.Proxy, res.Now), Because: because(&res.Proxy, res.Now), Holds: slotsOf(res.Proxy.Judge.Slots, res.Now),
		Pairs: []pairBody{}, Failures: failuresOf(poolOf(r.URL.Query()), failures.Failures),
	}
	for _, p := range res.Pairs {
		body := pairBody{Target: p.Target, NextOKAt: stamp(p.NextOK), Holds: []slotBody{}}
		if p.Charge != nil {
			body.Holds = slotsOf(p.Charge.Slots, res.Now)
			body.Streak, body.Provisional = int(p.Charge.Streak), int(p.Charge.Provisional)
		}
		answer.Pairs = append(answer.Pairs, body)
	}
	return writeJSON(w, http.StatusOK, answer)
}

// because is the state in a sentence.
func because(v *pool.ProxyView, now pool.Time) string {
	until := ""
	if v.Until > 0 {
		until = " until " + v.Until.Std().Format(timeFormat)
	}
	switch v.Status {
	case pool.StatusNew:
		return "never proven yet: one lease at a time until " + plural(2, "success", "successes")
	case pool.StatusProbation:
		return "its rest is over: one trial at a time"
	case pool.StatusActive:
		if v.Quality.GatedUntil > now {
			return "active, but kept back while others are ready: its last ten minutes are bad"
		}
		return "active"
	case pool.StatusCooling:
		return "cooling" + until + " after " + plural(int(v.Judge.Streak), "counted failure", "counted failures") + " in a row"
	case pool.StatusSuspended:
		return "suspended" + until + " after " + plural(int(v.Judge.Streak), "counted failure", "counted failures") +
			" in a row; the next lease then is a trial"
	case pool.StatusDraining:
		return "draining by order" + until + ": its leases run out, no new ones are granted"
	case pool.StatusDisabled:
		return "paused by order" + until
	case pool.StatusExpired:
		return "expired since " + v.Until.Std().Format(timeFormat)
	default:
		return ""
	}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

type patchBody struct {
	State     *string            `json:"state"`
	Reason    string             `json:"reason"`
	Until     *timestamp         `json:"until"`
	Cap       *int               `json:"cap"`
	Labels    *map[string]string `json:"labels"`
	Region    *string            `json:"region"`
	ExpiresAt *json.RawMessage   `json:"expires_at"`
}

func (b *patchBody) patch(now pool.Time) (pool.Patch, error) {
	p := pool.Patch{Reason: b.Reason, Cap: b.Cap, Region: b.Region}
	if len(b.Reason) > 500 || strings.ContainsFunc(b.Reason, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
		return p, invalid("reason", "is longer than 500 bytes or holds control characters")
	}
	if b.State != nil {
		status, err := pool.ParseStatus(*b.State)
		if err != nil || !slices.Contains([]pool.Status{pool.StatusActive, pool.StatusDraining, pool.StatusDisabled}, status) {
			return p, invalid("state", "must be active (resume), draining or disabled (pause)")
		}
		p.State = &status
	}
	if b.Until != nil && !time.Time(*b.Until).IsZero() {
		if p.Until = pool.At(time.Time(*b.Until)); p.Until <= now {
			return p, invalid("until", "lies in the past")
		}
	}
	if b.Cap != nil && (*b.Cap < 0 || *b.Cap > 10_000) {
		return p, invalid("cap", "must be 0 (the policy's) to 10000")
	}
	if b.Labels != nil {
		for key, value := range *b.Labels {
			if err := keeper.CheckLabel(key, value); err != nil {
				return p, err
			}
		}
		labels := pool.MakeLabels(*b.Labels)
		p.Labels = &labels
	}
	if b.Region != nil {
		if err := keeper.CheckFilterText("region", *b.Region); err != nil {
			return p, err
		}
	}
	if b.ExpiresAt != nil {
		var at timestamp
		if err := json.Unmarshal(*b.ExpiresAt, &at); err != nil {
			return p, invalid("expires_at", "must be RFC 3339, such as 2026-01-31T12:00:00Z, or null for never")
		}
		when := pool.At(time.Time(at))
		p.ExpiresAt = &when
	}
	return p, nil
}

func (s *Server) patchProxies(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	if err := onlyQuery(q, "pool", "state", "view", "region", "group", "label", "source", "dry_run"); err != nil {
		return err
	}
	filter, err := filterOf(q)
	if err != nil {
		return err
	}
	if filter == (pool.Filter{}) {
		return invalid("group", "name at least one of group, label, source, region, state: a change of all proxies must say state or view")
	}
	return s.patchBy(w, r, filter)
}

func (s *Server) patchProxy(w http.ResponseWriter, r *http.Request) error {
	if err := onlyQuery(r.URL.Query(), "pool", "dry_run"); err != nil {
		return err
	}
	id, err := proxy.ParseID(r.PathValue("id"))
	if err != nil {
		return store.ErrNoProxy
	}
	return s.patchBy(w, r, pool.Filter{ID: &id})
}

func (s *Server) patchBy(w http.ResponseWriter, r *http.Request, filter pool.Filter) error {
	var body patchBody
	if err := decode(w, r, maxBody, &body); err != nil {
		return err
	}
	patch, err := body.patch(s.store.Now())
	if err != nil {
		return err
	}
	dry, err := boolOf(r.URL.Query(), "dry_run")
	if err != nil {
		return err
	}
	n, err := s.k.Patch(r.Context(), poolOf(r.URL.Query()), filter, patch, dry)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]any{"matched": n, "dry_run": dry})
}

func boolOf(q url.Values, name string) (bool, error) {
	text := q.Get(name)
	if text == "" {
		return false, nil
	}
	b, err := strconv.ParseBool(text)
	if err != nil {
		return false, invalid(name, "must be true or false")
	}
	return b, nil
}

func (s *Server) deleteProxy(w http.ResponseWriter, r *http.Request) error {
	if err := onlyQuery(r.URL.Query(), "pool"); err != nil {
		return err
	}
	id, err := proxy.ParseID(r.PathValue("id"))
	if err != nil {
		return store.ErrNoProxy
	}
	if _, err := s.k.Remove(r.Context(), poolOf(r.URL.Query()), pool.Filter{ID: &id}); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

type rejectionBody struct {
	Line   int    `json:"line"`
	Reason string `json:"reason"`
}

func rejectionsOf(list []proxy.Rejection) []rejectionBody {
	out := []rejectionBody{}
	for _, r := range list {
		out = append(out, rejectionBody{r.Line, r.Reason})
	}
	return out
}

// maxImport bounds the list that one call brings.
const maxImport = 256 << 20

func (s *Server) importProxies(w http.ResponseWriter, r *http.Request) error {
	req, err := importOf(r.URL.Query())
	if err != nil {
		return err
	}
	req.Body = http.MaxBytesReader(w, r.Body, maxImport)
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // a long list may take its time
	res, err := s.k.Import(r.Context(), req)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]any{
		"accepted": res.Accepted, "updated": res.Updated, "duplicates": res.Duplicates,
		"rejected": rejectionsOf(res.Rejected), "ignored": rejectionsOf(res.Ignored),
	})
}

func importOf(q url.Values) (req keeper.ImportRequest, err error) {
	err = onlyQuery(q, "pool", "format", "scheme", "exit", "region", "group", "source", "labels", "cap", "expires_at", "ttl", "allow_special")
	if err != nil {
		return req, err
	}
	req = keeper.ImportRequest{
		Pool: q.Get("pool"), Exit: q.Get("exit"), Region: q.Get("region"), Group: q.Get("group"), Source: q.Get("source"),
		Labels: map[string]string{},
	}
	if format := q.Get("format"); format != "" && format != "auto" {
		return req, invalid("format", "must be auto: the form of each line is found by itself")
	}
	if text := q.Get("scheme"); text != "" {
		if req.Scheme, err = proxy.ParseScheme(text); err != nil {
			return req, invalid("scheme", err.Error())
		}
	}
	for _, list := range q["labels"] {
		for part := range strings.SplitSeq(list, ",") {
			key, value, ok := strings.Cut(part, "=")
			if !ok {
				return req, invalid("labels", "must be key=value, several with commas between")
			}
			req.Labels[key] = value
		}
	}
	if text := q.Get("cap"); text != "" {
		if req.Cap, err = strconv.Atoi(text); err != nil {
			return req, invalid("cap", "must be a whole number")
		}
	}
	if text := q.Get("expires_at"); text != "" {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return req, invalid("expires_at", "must be RFC 3339, such as 2026-01-31T12:00:00Z")
		}
		req.ExpiresAt = pool.At(at)
	}
	if text := q.Get("ttl"); text != "" {
		if req.TTL, err = time.ParseDuration(text); err != nil {
			return req, invalid("ttl", "must be a duration such as 12h")
		}
	}
	req.AllowSpecial, err = boolOf(q, "allow_special")
	return req, err
}
