package rules

// Held counts what the statistics hold.
func (s *Statistics) Held() (routes, bodies int) { return s.routes.order.Len(), s.bodies.order.Len() }
