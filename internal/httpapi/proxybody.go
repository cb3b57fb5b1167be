package httpapi

import (
	"time"

	"github.com/hostler-proxy/hostler/internal/pool"
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
