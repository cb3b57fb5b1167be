package demo

import "time"

// ttl is the demo's lease time, a tenth of the usual one.
const ttl = 3 * time.Second

// policyFile is the demo's policy: times are scaled so that minutes pass in seconds.
const policyFile = `pools:
  default:
    ttl: 3s
    max_lifetime: 1m
    grace: 2s
    lock_delay: 1s
    reuse_interval: 150ms
    timeouts: {connect: 1s, first_byte: 2s, total: 4s}
    cooldown:
      ladder: [2s, 4s, 8s, 16s]
      suspend_after: 5
      suspend_for: 20s
      suspend_max: 5m
      forgive: 1m
      rate_hold: 1s
      rate_hold_max: 8s
      policy_hold: 15s
      geo_hold: 30s
      quota_hold: 2s
`
