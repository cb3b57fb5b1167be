package lab

import (
	"fmt"
	"slices"
)

// maxProxies is how many source addresses 127.0.1.1 and up are used at most.
const maxProxies = 60_000

// validate finds what cannot be built, before a socket is opened.
func (o *Options) validate() error {
	n := 0
	for _, s := range o.Proxies {
		if err := s.validate(); err != nil {
			return err
		}
		n += s.Count
	}
	if n > maxProxies {
		return fmt.Errorf("%d proxies are asked for, %d are possible", n, maxProxies)
	}
	names := map[string]bool{}
	for _, s := range o.Targets {
		if err := s.validate(); err != nil {
			return err
		}
		if names[s.Name] {
			return fmt.Errorf("two targets are named %q", s.Name)
		}
		names[s.Name] = true
	}
	if o.Latency.Min < 0 || o.Latency.Max < o.Latency.Min {
		return fmt.Errorf("the latency from %s to %s is no range", o.Latency.Min, o.Latency.Max)
	}
	return nil
}

func (s *ProxySpec) validate() error {
	kinds := []ProxyKind{
		Good, Refusing, Hanging, WrongCredentials, Flaky, Denying, BadGateway, Expiring, Slow, CutsTunnel, Truncating, Tampering,
	}
	switch {
	case !slices.Contains(kinds, s.Kind):
		return fmt.Errorf("%q is not a kind of proxy", s.Kind)
	case s.Count < 0 || s.Delay < 0 || s.Turn < 0:
		return fmt.Errorf("a %s proxy has a negative count, delay or turn", s.Kind)
	case s.Kind == Expiring && s.ExpiresAfter <= 0:
		return fmt.Errorf("an expiring proxy needs ExpiresAfter")
	case s.Kind == Slow && s.Delay == 0:
		return fmt.Errorf("a slow proxy needs a Delay")
	}
	return nil
}

func (s *TargetSpec) validate() error {
	kinds := []TargetKind{PlainTarget, TLSTarget, LimitedTarget, OutageTarget, BanningTarget, SoftBlockTarget, HangingTarget}
	switch {
	case s.Name == "":
		return fmt.Errorf("a target of kind %q has no name", s.Kind)
	case !slices.Contains(kinds, s.Kind):
		return fmt.Errorf("%q is not a kind of target (%s)", s.Kind, s.Name)
	case s.Kind == LimitedTarget && (s.Rate <= 0 || s.Burst < 1):
		return fmt.Errorf("the target %s needs a Rate above 0 and a Burst of 1 or more", s.Name)
	case s.DownFor < 0 || s.Latency < 0 || s.BanAfter < 0 || s.PageBytes < 0:
		return fmt.Errorf("the target %s has a negative number", s.Name)
	}
	return nil
}
