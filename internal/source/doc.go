// Package source says what a source of proxies is: its settings, the presets of
// the main providers, how a JSON API's records become proxies, and whether an
// answer is to be believed. It is pure: what is fetched comes in as bytes.
package source
