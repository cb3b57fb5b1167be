// Package pool holds the records of one proxy pool and the mechanics that move
// them: who holds which proxy, until when, and what may be granted next.
//
// The package is the executable specification of Hostler. Everything in it is
// plain Go without clocks, randomness or I/O: now and rand are arguments, so
// the same calls give the same state on every machine. [State] is the whole of
// one pool in memory; the embedded store makes it durable, and every other
// store must give the same answers (internal/store/storetest).
//
// Two kinds of state are kept apart (docs/architecture.md). Mechanics, the
// fields named Mech, must change atomically: use counts, caps in force, rest
// times, in-flight counts. Judgement, the fields named Judge, is policy: streaks,
// ladders, slots, earned caps. Mechanics never decide whose fault a failure was;
// they ask a [Judge], hand it copies, and store what it rules.
//
// Every operation costs O(log n + K) whatever the size of the pool: free proxies
// stand in ordered sets by the time of their last start (index.go), whatever has
// a due time stands in a heap (due.go), and counts per state are kept, not taken.
package pool
