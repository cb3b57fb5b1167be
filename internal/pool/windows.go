package pool

// Counts are the outcomes in a window.
type Counts struct {
	Total    uint32 // requests that count
	OK       uint32 // successes
	Blamed   uint32 // failures that were the proxy's own doing
	Doubtful uint32 // failures of proxy or target, not known which
	Timeouts uint32
	S403     uint32
	S429     uint32
	Valid    uint32 // data that the caller called valid
	Invalid  uint32
}

// Plus adds two counts.
func (c Counts) Plus(d Counts) Counts {
	c.Total += d.Total
	c.OK += d.OK
	c.Blamed += d.Blamed
	c.Doubtful += d.Doubtful
	c.Timeouts += d.Timeouts
	c.S403 += d.S403
	c.S429 += d.S429
	c.Valid += d.Valid
	c.Invalid += d.Invalid
	return c
}

// minus takes counts away, never below 0.
func (c Counts) minus(d Counts) Counts {
	sub := func(a *uint32, b uint32) { *a -= min(*a, b) }
	sub(&c.Total, d.Total)
	sub(&c.OK, d.OK)
	sub(&c.Blamed, d.Blamed)
	sub(&c.Doubtful, d.Doubtful)
	sub(&c.Timeouts, d.Timeouts)
	sub(&c.S403, d.S403)
	sub(&c.S429, d.S429)
	sub(&c.Valid, d.Valid)
	sub(&c.Invalid, d.Invalid)
	return c
}

// small is a bucket in eight bits a count: enough for a use each second; busier records go wide.
type small struct{ Total, OK, Blamed, Doubtful, Timeouts, S403, S429, Valid, Invalid uint8 }

func (b *small) wide() Counts {
	return Counts{
		uint32(b.Total), uint32(b.OK), uint32(b.Blamed), uint32(b.Doubtful), uint32(b.Timeouts),
		uint32(b.S403), uint32(b.S429), uint32(b.Valid), uint32(b.Invalid),
	}
}

// narrow gives the counts in eight bits, if they fit.
func (c *Counts) narrow() (small, bool) {
	b := small{
		uint8(c.Total), uint8(c.OK), uint8(c.Blamed), uint8(c.Doubtful), uint8(c.Timeouts),
		uint8(c.S403), uint8(c.S429), uint8(c.Valid), uint8(c.Invalid),
	}
	return b, c.Total|c.OK|c.Blamed|c.Doubtful|c.Timeouts|c.S403|c.S429|c.Valid|c.Invalid <= 0xff
}

// The rings: ten buckets of a minute, twelve of five minutes.
const (
	minuteLength = 60_000  // ms
	fiveLength   = 300_000 // ms
	minuteCount  = 10
	fiveCount    = 12
	bucketCount  = minuteCount + fiveCount
)

// Windows are the success windows of one record: the last ten minutes, the last
// hour, and the current day in the pool's zone. The zero value is empty.
//
// A window's sum is exact for all events from the start of its oldest kept
// bucket to now: ten minutes are 9 to 10 minutes, an hour is 55 to 60. The day
// is one counter with its day number, not a ring of hours: that is exact on days
// of 23 and 25 hours too, and half the memory. A clock that steps back writes
// into the newest bucket, never into an older one.
type Windows struct {
	minute, five int32 // number of the newest bucket of each ring
	day          int32
	ten, hour    Standing // sums of the kept buckets, so that the judge need not add
	today        Counts
	small        [bucketCount]small
	big          *[bucketCount]Counts // in use instead of small once a count was too large
}

// Standing is what a window says of a record itself: successes, and failures
// that were its own doing or may have been.
type Standing struct{ OK, Bad uint32 }

// N is the number of outcomes that say something.
func (s Standing) N() uint32 { return s.OK + s.Bad }

// Plus adds counts.
func (s Standing) Plus(d Counts) Standing {
	return Standing{s.OK + d.OK, s.Bad + d.Blamed + d.Doubtful}
}

// Standings are the record's standing in the three windows at now.
func (w *Windows) Standings(now Time, day int32) (ten, hour, today Standing) {
	w.advance(now, day)
	return w.ten, w.hour, Standing{}.Plus(w.today)
}

// Add counts d at now; day is the local day number.
func (w *Windows) Add(now Time, day int32, d Counts) {
	w.advance(now, day)
	w.add(int(w.minute%minuteCount), d)
	w.add(minuteCount+int(w.five%fiveCount), d)
	w.ten, w.hour = w.ten.Plus(d), w.hour.Plus(d)
	w.today = w.today.Plus(d)
}

// advance moves the rings to now and zeroes what they pass.
func (w *Windows) advance(now Time, day int32) {
	if m := int32(now / minuteLength); m > w.minute {
		w.zero(0, minuteCount, w.minute, m, &w.ten)
		w.minute = m
		if f := int32(now / fiveLength); f > w.five {
			w.zero(minuteCount, fiveCount, w.five, f, &w.hour)
			w.five = f
		}
	}
	if day > w.day {
		w.day, w.today = day, Counts{}
	}
}

// zero empties the buckets after old up to new of a ring of n that starts at base.
func (w *Windows) zero(base, n int, old, new int32, sum *Standing) {
	if new-old >= int32(n) {
		old, *sum = new-int32(n), Standing{}
	}
	for k := old + 1; k <= new; k++ {
		i := base + int(k)%n
		c := w.at(i)
		if c == (Counts{}) {
			continue
		}
		if *sum != (Standing{}) {
			sum.OK -= c.OK
			sum.Bad -= c.Blamed + c.Doubtful
		}
		w.set(i, Counts{})
	}
}

// add counts d in one bucket.
func (w *Windows) add(i int, d Counts) {
	if w.big != nil || !w.small[i].add(&d) {
		w.set(i, w.at(i).Plus(d))
	}
}

// add counts d, if all counts still fit.
func (b *small) add(d *Counts) bool {
	if *d == (Counts{Total: 1, OK: 1}) && b.Total < 0xff { // by far the most frequent
		b.Total++
		b.OK++
		return true
	}
	n := [...]uint32{
		uint32(b.Total) + d.Total, uint32(b.OK) + d.OK, uint32(b.Blamed) + d.Blamed, uint32(b.Doubtful) + d.Doubtful,
		uint32(b.Timeouts) + d.Timeouts, uint32(b.S403) + d.S403, uint32(b.S429) + d.S429,
		uint32(b.Valid) + d.Valid, uint32(b.Invalid) + d.Invalid,
	}
	if n[0]|n[1]|n[2]|n[3]|n[4]|n[5]|n[6]|n[7]|n[8] > 0xff {
		return false
	}
	*b = small{
		uint8(n[0]), uint8(n[1]), uint8(n[2]), uint8(n[3]), uint8(n[4]),
		uint8(n[5]), uint8(n[6]), uint8(n[7]), uint8(n[8]),
	}
	return true
}

func (w *Windows) at(i int) Counts {
	if w.big != nil {
		return w.big[i]
	}
	return w.small[i].wide()
}

func (w *Windows) set(i int, c Counts) {
	if w.big == nil {
		b, fits := c.narrow()
		if fits {
			w.small[i] = b
			return
		}
		w.widen()
	}
	w.big[i] = c
}

func (w *Windows) widen() {
	w.big = new([bucketCount]Counts)
	for i := range w.small {
		w.big[i] = w.small[i].wide()
	}
	w.small = [bucketCount]small{}
}

// TenMinutes sums the last ten minutes.
func (w *Windows) TenMinutes(now Time) Counts {
	return w.sum(0, minuteCount, w.minute, int32(now/minuteLength))
}

// Hour sums the last hour.
func (w *Windows) Hour(now Time) Counts {
	return w.sum(minuteCount, fiveCount, w.five, int32(now/fiveLength))
}

// Day sums the local day with this number.
func (w *Windows) Day(_ Time, day int32) Counts {
	if day > w.day {
		return Counts{}
	}
	return w.today
}

// sum adds the buckets of a ring that are still within its length at bucket cur.
func (w *Windows) sum(base, n int, newest, cur int32) (total Counts) {
	cur = max(cur, newest)
	for k := max(cur-int32(n)+1, newest-int32(n)+1, 0); k <= newest; k++ {
		i := base + int(k)%n
		if w.big != nil {
			total = total.Plus(w.big[i])
			continue
		}
		b := &w.small[i]
		total.Total += uint32(b.Total)
		total.OK += uint32(b.OK)
		total.Blamed += uint32(b.Blamed)
		total.Doubtful += uint32(b.Doubtful)
		total.Timeouts += uint32(b.Timeouts)
		total.S403 += uint32(b.S403)
		total.S429 += uint32(b.S429)
		total.Valid += uint32(b.Valid)
		total.Invalid += uint32(b.Invalid)
	}
	return total
}

// Amend changes counts after the fact, in the buckets of the moment at, if they
// are still kept. Nothing goes below 0.
func (w *Windows) Amend(at Time, day int32, now Time, add, sub Counts) {
	w.advance(now, day)
	if m := int32(at / minuteLength); m <= w.minute && m > w.minute-minuteCount {
		w.amend(int(m%minuteCount), add, sub)
	}
	if f := int32(at / fiveLength); f <= w.five && f > w.five-fiveCount {
		w.amend(minuteCount+int(f%fiveCount), add, sub)
	}
	w.today = w.today.minus(sub).Plus(add)
	w.resum()
}

func (w *Windows) amend(i int, add, sub Counts) { w.set(i, w.at(i).minus(sub).Plus(add)) }

// resum adds the kept sums up again.
func (w *Windows) resum() {
	w.ten = Standing{}.Plus(w.sum(0, minuteCount, w.minute, w.minute))
	w.hour = Standing{}.Plus(w.sum(minuteCount, fiveCount, w.five, w.five))
}
