package source

import "time"

// Failing sources are asked again soon, then ever later.
const (
	firstRetry = 30 * time.Second
	longRetry  = 10 * time.Minute
	longestAsk = 24 * time.Hour // of what a server wants
)

// Wait is the time until the next fetch: the interval, or after failures in a row
// half a minute, doubling up to the interval or ten minutes, whichever is longer;
// asked is what the server wants at least. u, 0 to 1, adds up to a tenth, so that
// sources and daemons do not come all at once.
func Wait(interval time.Duration, fails int, asked time.Duration, u float64) time.Duration {
	wait := interval
	if fails > 0 {
		top := max(interval, longRetry)
		wait = min(interval, firstRetry)
		for range fails - 1 {
			if wait = min(2*wait, top); wait == top {
				break
			}
		}
		wait = max(wait, min(asked, longestAsk))
	}
	return wait + time.Duration(u*float64(wait)/10)
}

// Left is how long until the next fetch, given the time that was set for it. A
// time further away than any wait comes from a clock that was put back: it is now.
func Left(interval, until time.Duration) time.Duration {
	if until > 2*max(interval, longestAsk) {
		return 0
	}
	return max(until, 0)
}

// staleAfter is how many intervals without a good fetch make a source stale.
const staleAfter = 3

// Stale says whether a source went without a good fetch for too long; age is the
// time since the last one, or since the source is known.
func Stale(interval, age time.Duration) bool { return age > staleAfter*interval }
