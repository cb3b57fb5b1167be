package pool

// Beat is one lease in a heartbeat.
type Beat struct {
	Key   Key
	Fence int64 // 0 = not checked
}

// BeatResult is what a heartbeat did for a lease.
type BeatResult uint8

// The results of a heartbeat.
const (
	BeatOK          BeatResult = iota
	BeatLost                   // ended, or never was
	BeatMaxLifetime            // runs to its end, no further
	BeatStop                   // the proxy must not be used any longer
)

var beatNames = [...]string{"ok", "lost", "max_lifetime", "stop"}

// String gives the wire name.
func (r BeatResult) String() string { return beatNames[r] }

// Extended is the answer for one lease.
type Extended struct {
	Result   BeatResult
	Deadline Time
	Target   string
}

// Extend answers a heartbeat. It only ever extends, never past the hard
// lifetime, and never brings back what has ended.
func (s *State) Extend(now Time, tenant, worker string, concurrency int, beats []Beat) []Extended {
	s.tick(now)
	s.seen(s.worker(tenant, worker), concurrency)
	out := make([]Extended, len(beats))
	for i, b := range beats {
		out[i] = s.extend(b)
	}
	return out
}

func (s *State) extend(b Beat) Extended {
	lease := s.leases.alive(b.Key)
	if lease == nil || b.Fence != 0 && b.Fence != lease.Fence {
		return Extended{Result: BeatLost}
	}
	x := Extended{Target: s.targets[lease.Target].Name, Deadline: lease.Deadline}
	switch status := s.hot[lease.Proxy].status; {
	case status == StatusDisabled || status == StatusSuspended:
		x.Result = BeatStop
		return x
	case lease.Deadline >= lease.Hard:
		x.Result = BeatMaxLifetime
		return x
	}
	lease.Deadline = max(lease.Deadline, min(s.now.Add(lease.TTL), lease.Hard))
	x.Deadline = lease.Deadline
	s.changed.lease(lease)
	return x
}
