package judge

import "github.com/hostler-proxy/hostler/internal/pool"

// ParserProxies is how many proxies must bring invalid data before a parser is
// suspected, and parserPages how many pages must have been looked at.
const (
	ParserProxies = 5
	parserPages   = 20
)

// ParserSuspect says whether a target's data stopped being valid while its
// answers stay good: then the site's layout changed or the parser broke, and no
// proxy is at fault. ten, hour and day are the target's windows, proxies is how
// many proxies brought invalid data in the last ten minutes.
func ParserSuspect(ten, hour, day pool.Counts, proxies int) bool {
	if proxies < ParserProxies || ten.Valid+ten.Invalid < parserPages {
		return false
	}
	before := less(hour, ten)
	if before.Valid+before.Invalid < parserPages {
		before = less(day, ten)
	}
	if before.Valid+before.Invalid < parserPages {
		return false
	}
	fallen := validHigh(ten) < validLow(before)/2
	asBefore := WilsonHigh(float64(ten.OK), float64(ten.Total), wilson95) >= WilsonLow(float64(before.OK), float64(before.Total), wilson95)
	return fallen && asBefore
}

func validHigh(c pool.Counts) float64 {
	return WilsonHigh(float64(c.Valid), float64(c.Valid+c.Invalid), wilson95)
}

func validLow(c pool.Counts) float64 {
	return WilsonLow(float64(c.Valid), float64(c.Valid+c.Invalid), wilson95)
}

// less takes the last ten minutes out of a longer window, never below 0: the day
// may have begun within them.
func less(long, ten pool.Counts) pool.Counts {
	sub := func(a, b uint32) uint32 { return a - min(a, b) }
	return pool.Counts{
		Total: sub(long.Total, ten.Total), OK: sub(long.OK, ten.OK), Valid: sub(long.Valid, ten.Valid), Invalid: sub(long.Invalid, ten.Invalid),
	}
}
