package lab

import "time"

// bucket is a token bucket of one address.
type bucket struct {
	tokens float64
	at     time.Time
}

// allow takes a token of an address.
func (t *Target) allow(source string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.lab.now()
	b := t.buckets[source]
	if b == nil {
		b = &bucket{float64(t.spec.Burst), now}
		t.buckets[source] = b
	}
	b.tokens = min(float64(t.spec.Burst), b.tokens+t.spec.Rate*now.Sub(b.at).Seconds())
	b.at = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
