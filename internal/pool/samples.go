package pool

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"
)

// sampleCount is how many durations a record keeps: enough for a median that
// follows within minutes, in one cache line.
const sampleCount = 16

// Samples are the last durations of one kind: latencies, holds, intervals. The
// zero value is empty.
type Samples struct {
	kept [sampleCount]struct {
		value  sample
		minute uint16 // of the time it was taken; wraps after 45 days
	}
	n, next uint8
}

// sample is a duration in sixteen bits: milliseconds, or, with the top bit,
// seconds; longer than 32,767 s is cut.
type sample uint16

func sampleOf(d time.Duration) sample {
	ms := max(0, d.Milliseconds())
	if ms < 1<<15 {
		return sample(ms)
	}
	return sample(1<<15 | min(ms/1000, 1<<15-1))
}

func (s sample) duration() time.Duration {
	if s < 1<<15 {
		return time.Duration(s) * time.Millisecond
	}
	return time.Duration(s&(1<<15-1)) * time.Second
}

// Add keeps a duration seen at now.
func (s *Samples) Add(now Time, d time.Duration) {
	s.kept[s.next].value = sampleOf(d)
	s.kept[s.next].minute = uint16(now / minuteLength)
	s.next = (s.next + 1) % sampleCount
	s.n = min(s.n+1, sampleCount)
}

// P50 is the median of the kept durations that are younger than the window; ok
// is false when there is none.
func (s *Samples) P50(now Time, window time.Duration) (d time.Duration, ok bool) {
	var list [sampleCount]sample
	minute := uint16(now / minuteLength)
	k := 0
	for _, x := range s.kept[:s.n] {
		if age := minute - x.minute; time.Duration(age)*time.Minute <= window {
			list[k] = x.value
			k++
		}
	}
	if k == 0 {
		return 0, false
	}
	slices.Sort(list[:k])
	return list[(k-1)/2].duration(), true
}

// Last is the newest duration.
func (s *Samples) Last() (d time.Duration, ok bool) {
	if s.n == 0 {
		return 0, false
	}
	return s.kept[(s.next+sampleCount-1)%sampleCount].value.duration(), true
}

const samplesVersion = 1

var errSamples = errors.New("the duration samples are damaged")

// AppendBinary encodes the samples, oldest first.
func (s *Samples) AppendBinary(b []byte) []byte {
	b = append(b, samplesVersion, s.n)
	for k := range s.n {
		i := (s.next + sampleCount - s.n + k) % sampleCount
		b = binary.BigEndian.AppendUint16(b, uint16(s.kept[i].value))
		b = binary.BigEndian.AppendUint16(b, s.kept[i].minute)
	}
	return b
}

// UnmarshalBinary reads the encoding; no bytes at all are no samples.
func (s *Samples) UnmarshalBinary(b []byte) error {
	*s = Samples{}
	if len(b) == 0 {
		return nil
	}
	if len(b) < 2 || b[0] != samplesVersion || b[1] > sampleCount || len(b) != 2+4*int(b[1]) {
		return errSamples
	}
	s.n, s.next = b[1], b[1]%sampleCount
	for i := range s.n {
		at := 2 + 4*int(i)
		s.kept[i].value = sample(binary.BigEndian.Uint16(b[at:]))
		s.kept[i].minute = binary.BigEndian.Uint16(b[at+2:])
	}
	return nil
}
