// Package ramp finds how many requests at once a target bears: it drives real
// requests through leased proxies, a step higher each time, until too many of
// them are refused, time out, or bring other pages than before.
//
// It is a worker like any other: it leases, fetches, and reports what it saw.
package ramp
