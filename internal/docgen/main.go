// Docgen writes docs/configuration.md from the table of settings.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/hostler-proxy/hostler/internal/config"
	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/source"
)

const head = `<!-- Code generated from internal/config/fields.go and internal/source/fields.go by go generate. DO NOT EDIT. -->

# Configuration

Flags wire the process (` + "`hostler serve --help`" + `); one YAML file states the policy. ` + "`hostler serve --config FILE`" + ` applies it at
the start, SIGHUP and ` + "`hostler config apply FILE`" + ` apply it again, wholly or not at all; ` + "`hostler config check FILE`" + ` checks
it without a daemon, and ` + "`hostler config print --defaults`" + ` prints a file with all defaults.

What an operator edits through the API (` + "`PUT /v1/pools/{pool}`" + `, ` + "`PUT /v1/targets/{target}`" + `) stands over the file: a
reload keeps it and names it. Whatever the file does not say keeps its default. Unknown names and values out of range are
refused with their line.

` + "```yaml" + `
pools:
  default:
    ttl: 30s
    cooldown:
      ladder: [30s, 1m, 2m, 4m, 8m, 10m]
    targets:
      shop.example: {reuse_interval: 12s}
` + "```" + `

In the API's JSON the same names end in ` + "`_ms`" + ` where they are durations, in milliseconds.

| setting | default | meaning |
|---|---|---|
`

const sources = `
# Sources

The section ` + "`sources`" + ` names where proxies come from by themselves; [sources.md](sources.md) explains it. Each source names one of
` + "`file`, `url`, `json.url` and `preset`" + `.

| setting | default | meaning |
|---|---|---|
`

func main() {
	policy := pool.DefaultPolicy()
	var b strings.Builder
	b.WriteString(head)
	for _, f := range config.Fields() {
		_, _ = fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", f.Path, f.Get(&policy), f.Doc)
	}
	for _, f := range config.NamedFields() {
		_, _ = fmt.Fprintf(&b, "| `%s` | | %s |\n", f.Path("NAME"), f.Doc)
	}
	b.WriteString(sources)
	for _, f := range source.Fields() {
		_, _ = fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Path, f.Default, f.Doc)
	}
	if err := os.WriteFile("../../docs/configuration.md", []byte(b.String()), 0o644); err != nil { //nolint:gosec // a document
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
