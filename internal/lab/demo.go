package lab

import "time"

// Demo is the lab of the demo: 26 proxies and 4 targets, scaled to a run of d.
//
// Its flaky proxies work in turns rather than by coin, so that they rest and come
// back within a run: a turn outlasts the first two rests of the demo's policy, so
// that whoever fails early in a turn is tried twice within a turn that works. Its
// bad gateway fails tunnels only, as real ones do whose outgoing port 443 is closed.
func Demo(seed uint64, d time.Duration) Options {
	return Options{
		Seed: seed,
		Proxies: []ProxySpec{
			{Kind: Good, Count: 14, Auth: true},
			{Kind: Refusing, Count: 3, Auth: true},
			{Kind: Hanging, Count: 2, Auth: true},
			{Kind: WrongCredentials, Count: 2, Auth: true},
			{Kind: Flaky, Count: 2, Auth: true, Turn: d * 3 / 10},
			{Kind: Denying, Count: 1, Auth: true},
			{Kind: BadGateway, Count: 1, Auth: true, TunnelsOnly: true},
			{Kind: Expiring, Count: 1, Auth: true, ExpiresAfter: d / 2},
		},
		Targets: []TargetSpec{
			{Name: "shop", Kind: PlainTarget, Latency: 20 * time.Millisecond},
			{Name: "news", Kind: TLSTarget, Latency: 20 * time.Millisecond},
			{Name: "limited", Kind: LimitedTarget, Rate: 0.4, Burst: 1, Latency: 10 * time.Millisecond},
			{Name: "outage", Kind: OutageTarget, DownFrom: d * 35 / 100, DownFor: d / 4, Latency: 20 * time.Millisecond},
		},
	}
}
