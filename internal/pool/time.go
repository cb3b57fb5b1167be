package pool

import "time"

// Time is a moment in milliseconds since the Unix epoch; 0 means "never". All
// stores keep and compare times in this unit, so that they agree to the digit.
type Time int64

// At gives the moment of a time.Time, cut to milliseconds.
func At(t time.Time) Time {
	if t.IsZero() {
		return 0
	}
	return Time(t.UnixMilli())
}

// Add gives the moment d later, cut to milliseconds.
func (t Time) Add(d time.Duration) Time { return t + Time(d/time.Millisecond) }

// Sub gives the time from u to t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t-u) * time.Millisecond }

// Std gives the moment as a time.Time in UTC.
func (t Time) Std() time.Time { return time.UnixMilli(int64(t)).UTC() }

// IsZero says whether the time is "never".
func (t Time) IsZero() bool { return t == 0 }
