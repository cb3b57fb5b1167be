package judge

import (
	"math"

	"github.com/hostler-proxy/hostler/internal/pool"
)

// WilsonLow is the lower end of the Wilson score interval for ok successes of n
// at z standard deviations; 0 for n = 0 (Wilson 1927).
func WilsonLow(ok, n, z float64) float64 {
	centre, half := wilson(ok, n, z)
	return max(0, centre-half)
}

// WilsonHigh is the upper end of the interval; 1 for n = 0.
func WilsonHigh(ok, n, z float64) float64 {
	centre, half := wilson(ok, n, z)
	return min(1, centre+half)
}

func wilson(ok, n, z float64) (centre, half float64) {
	if n <= 0 {
		return 0.5, 0.5
	}
	p, zz := ok/n, z*z
	denominator := 1 + zz/n
	centre = (p + zz/(2*n)) / denominator
	half = z * math.Sqrt(p*(1-p)/n+zz/(4*n*n)) / denominator
	return centre, half
}

// kappa is the weight of a prior in requests: with fewer of its own, a window
// leans on the next longer one (docs/policy.md, windowed score).
const kappa = 8

// even is the prior of a proxy of which nothing is known.
const even = 0.5

// Score is what picks compare: the Wilson-low (z = 1) of the ten-minute count
// shrunk towards the hour, which is shrunk towards the day, which is shrunk
// towards an even chance. Only outcomes that speak of the proxy count.
func Score(ten, hour, day pool.Standing) float64 {
	return score(ten, shrunk(hour, shrunk(day, even)))
}

func score(ten pool.Standing, prior float64) float64 {
	return WilsonLow(float64(ten.OK)+kappa*prior, float64(ten.N())+kappa, 1)
}

func shrunk(c pool.Standing, prior float64) float64 {
	return (float64(c.OK) + kappa*prior) / (float64(c.N()) + kappa)
}
