package lab

import (
	"context"
	"time"
)

// wallClock is the only place that reads the time: socket deadlines, measured
// durations and certificates are real whatever [Options.Now] says.
func wallClock() time.Time {
	return time.Now()
}

// pause waits in real time; false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
