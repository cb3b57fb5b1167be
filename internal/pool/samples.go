package pool

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"
)

// sampleCount is how many uses a record keeps: enough for a median that follows
// within minutes, in two cache lines; odd, so that the median is one of them.
const sampleCount = 13

// Timing is what is kept of a use's times.
type Timing uint8

// The timings.
const (
	Interval Timing = iota // between the starts of this use and the one before
	Hold                   // from grant to end
	Latency                // of a success, as reported
	timingCount
)

// Samples are the times of the last uses of a proxy. The zero value is empty.
type Samples struct {
	kept [sampleCount]struct {
		times  [timingCount]sample
		minute uint16 // of the use's end; wraps after 45 days
	}
	n, next uint8
}

// sample is a duration in sixteen bits: 0 for none, else milliseconds plus one,
// or, with the top bit, seconds; longer than 32,767 s is cut.
type sample uint16

const inSeconds = 1 << 15

func sampleOf(d time.Duration) sample {
	ms := max(0, d.Milliseconds())
	if ms < inSeconds-1 {
		return sample(ms) + 1
	}
	return sample(inSeconds | min(ms/1000, inSeconds-1))
}

func (s sample) duration() time.Duration {
	if s < inSeconds {
		return time.Duration(s-1) * time.Millisecond
	}
	return time.Duration(s&(inSeconds-1)) * time.Second
}

// Use is one use; a time below 0 is not known.
type Use [timingCount]time.Duration

// Add keeps the times of a use that ended at now.
func (s *Samples) Add(now Time, u Use) {
	at := &s.kept[s.next]
	at.minute = uint16(now / minuteLength)
	for i, d := range u {
		if at.times[i] = 0; d >= 0 {
			at.times[i] = sampleOf(d)
		}
	}
	s.next = (s.next + 1) % sampleCount
	s.n = min(s.n+1, sampleCount)
}

// P50 is the median of one timing over the kept uses that are younger than the
// window; ok is false when there is none.
func (s *Samples) P50(what Timing, now Time, window time.Duration) (d time.Duration, ok bool) {
	var list [sampleCount]sample
	minute := uint16(now / minuteLength)
	k := 0
	for i := range s.kept[:s.n] {
		x := &s.kept[i]
		if age := minute - x.minute; x.times[what] != 0 && time.Duration(age)*time.Minute <= window {
			list[k] = x.times[what]
			k++
		}
	}
	if k == 0 {
		return 0, false
	}
	slices.Sort(list[:k])
	return list[(k-1)/2].duration(), true
}

// Last is the newest known one of a timing.
func (s *Samples) Last(what Timing) (d time.Duration, ok bool) {
	for k := range s.n {
		if x := s.kept[(s.next+sampleCount-1-k)%sampleCount].times[what]; x != 0 {
			return x.duration(), true
		}
	}
	return 0, false
}

const (
	samplesVersion = 1
	useSize        = 2 * (int(timingCount) + 1)
)

var errSamples = errors.New("the times of uses are damaged")

// AppendBinary encodes the samples, oldest first.
func (s *Samples) AppendBinary(b []byte) []byte {
	b = append(b, samplesVersion, s.n)
	for k := range s.n {
		x := &s.kept[(s.next+sampleCount-s.n+k)%sampleCount]
		for _, t := range x.times {
			b = binary.BigEndian.AppendUint16(b, uint16(t))
		}
		b = binary.BigEndian.AppendUint16(b, x.minute)
	}
	return b
}

// UnmarshalBinary reads the encoding; no bytes at all are no samples.
func (s *Samples) UnmarshalBinary(b []byte) error {
	*s = Samples{}
	if len(b) == 0 {
		return nil
	}
	if len(b) < 2 || b[0] != samplesVersion || b[1] > sampleCount || len(b) != 2+useSize*int(b[1]) {
		return errSamples
	}
	s.n, s.next = b[1], b[1]%sampleCount
	for i := range s.n {
		at := b[2+useSize*int(i):]
		for t := range s.kept[i].times {
			s.kept[i].times[t] = sample(binary.BigEndian.Uint16(at[2*t:]))
		}
		s.kept[i].minute = binary.BigEndian.Uint16(at[2*timingCount:])
	}
	return nil
}
