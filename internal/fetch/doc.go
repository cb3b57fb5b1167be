// Package fetch reads sources of proxies: files, URLs, JSON APIs. It goes only
// where a source may lead: at most five redirects, never from https to http,
// credentials to the source's own origin alone, and no special-purpose address
// that the operator did not name; see guard.go. Its faults are sentences that can
// be shown: they hold no credential, and nothing that a server said.
package fetch
