package pool

import (
	"encoding/binary"
	"errors"
)

// windowsVersion is the first byte of the encoding.
const windowsVersion = 1

var errWindows = errors.New("the success windows are damaged")

// AppendBinary encodes the windows: a version, the bucket numbers, the day, then
// for each bucket a mask of the counts that are not 0 and those counts.
func (w *Windows) AppendBinary(b []byte) []byte {
	b = append(b, windowsVersion)
	for _, n := range []int32{w.minute, w.five, w.day} {
		b = binary.AppendVarint(b, int64(n))
	}
	b = appendCounts(b, w.today)
	for i := range bucketCount {
		if w.big == nil && w.small[i] == (small{}) {
			b = append(b, 0) // an empty mask: most buckets of most records
			continue
		}
		b = appendCounts(b, w.at(i))
	}
	return b
}

func (c *Counts) fields() [9]*uint32 {
	return [9]*uint32{&c.Total, &c.OK, &c.Blamed, &c.Doubtful, &c.Timeouts, &c.S403, &c.S429, &c.Valid, &c.Invalid}
}

func appendCounts(b []byte, c Counts) []byte {
	mask := uint64(0)
	for i, f := range c.fields() {
		if *f != 0 {
			mask |= 1 << i
		}
	}
	b = binary.AppendUvarint(b, mask)
	for _, f := range c.fields() {
		if *f != 0 {
			b = binary.AppendUvarint(b, uint64(*f))
		}
	}
	return b
}

// UnmarshalBinary reads the encoding; no bytes at all are empty windows.
func (w *Windows) UnmarshalBinary(b []byte) error {
	*w = Windows{}
	if len(b) == 0 {
		return nil
	}
	r := reader{b: b}
	if r.byte() != windowsVersion {
		return errWindows
	}
	w.minute, w.five, w.day = r.int32(), r.int32(), r.int32()
	w.today = r.counts()
	for i := range bucketCount {
		w.set(i, r.counts())
	}
	if r.bad || len(r.b) != 0 || w.minute < 0 || w.five < 0 {
		*w = Windows{}
		return errWindows
	}
	w.resum()
	return nil
}

// reader takes an encoding apart; after damage everything it gives is 0.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.bad = true
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) int32() int32 {
	v, n := binary.Varint(r.b)
	if n <= 0 || v != int64(int32(v)) {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return int32(v)
}

func (r *reader) counts() (c Counts) {
	mask := r.uint()
	if mask >= 1<<9 {
		r.bad = true
		return Counts{}
	}
	for i, f := range c.fields() {
		if mask&(1<<i) == 0 {
			continue
		}
		v := r.uint()
		if v != uint64(uint32(v)) {
			r.bad = true
		}
		*f = uint32(v)
	}
	return c
}
