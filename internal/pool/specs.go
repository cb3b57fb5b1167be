package pool

// Specs copies what lists and operators said of the proxies that the filter
// takes: up to limit of them, by number, from one on. next is where to go on; 0
// = there are no more. Proxies that are being removed are left out.
func (s *State) Specs(now Time, f Filter, from uint32, limit int) (specs []Spec, next uint32) {
	s.tick(now)
	for n := int(from); n < len(s.proxies); n++ {
		p := s.proxies[n]
		if p == nil || p.Admin.Remove || f.ID != nil && *f.ID != p.ID || !s.matches(&f, p) {
			continue
		}
		if len(specs) == limit {
			return specs, uint32(n)
		}
		specs = append(specs, *p.Spec)
	}
	return specs, 0
}
