package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/hostler-proxy/hostler/internal/app"
	"github.com/hostler-proxy/hostler/internal/config"
)

type configCmd struct {
	Check configCheckCmd `cmd:"" help:"Check a policy file without a daemon."`
	Print configPrintCmd `cmd:"" help:"Show the policies in force."`
	Apply configApplyCmd `cmd:"" help:"Put a policy file in force, and show what changed."`
}

// readPolicy reads a policy file and checks it whole.
func (e *env) readPolicy(name string) ([]byte, *config.File, error) {
	var text []byte
	var err error
	if name == "-" {
		text, err = io.ReadAll(io.LimitReader(e.in, 2<<20))
	} else {
		text, err = os.ReadFile(name) //nolint:gosec // the user names it
	}
	if err != nil {
		return nil, nil, &app.UsageError{Text: err.Error()}
	}
	file, err := config.Parse(text)
	if err != nil {
		return nil, nil, &app.UsageError{Text: fmt.Sprintf("%s: %v", name, err)}
	}
	for _, pool := range slices.Sorted(maps.Keys(file.Pools)) {
		if _, err := config.Apply(file.Pools[pool], nil); err != nil {
			return nil, nil, &app.UsageError{Text: fmt.Sprintf("%s: pool %s: %v", name, pool, err)}
		}
	}
	return text, file, nil
}

type configCheckCmd struct {
	File string `arg:"" help:"The policy file; - is standard input."`
}

// Run checks a file.
func (c *configCheckCmd) Run(e *env) error {
	_, file, err := e.readPolicy(c.File)
	if err != nil {
		return err
	}
	if e.cli.JSON {
		return e.printJSON(map[string]any{
			"ok": true, "pools": slices.Sorted(maps.Keys(file.Pools)), "sources": slices.Sorted(maps.Keys(file.Sources)),
		})
	}
	e.printf("%s is good: %d pools, %d sources\n", c.File, len(file.Pools), len(file.Sources))
	return nil
}

type configPrintCmd struct {
	Defaults bool `help:"Show the defaults instead, without a daemon."`
}

// Run shows settings in the file's form.
func (c *configPrintCmd) Run(ctx context.Context, e *env) error {
	if c.Defaults {
		policy, err := config.Apply(nil, nil)
		if err != nil {
			return err
		}
		_, err = io.WriteString(e.out, config.Format(map[string]config.Settings{"default": config.Values(&policy)}))
		return err
	}
	api, err := e.client()
	if err != nil {
		return err
	}
	pools, err := api.Config(ctx)
	if err != nil {
		return err
	}
	list, err := api.Sources(ctx)
	if err != nil {
		return err
	}
	sources := map[string]config.Settings{}
	for _, s := range list {
		sources[s.Name] = s.Settings
	}
	if e.cli.JSON {
		return e.printJSON(map[string]any{"pools": pools, "sources": sources})
	}
	settings := map[string]config.Settings{}
	for name, p := range pools {
		settings[name] = p.Settings
	}
	text := config.Format(settings)
	if len(sources) > 0 {
		text += config.FormatSources(sources)
	}
	if _, err := io.WriteString(e.out, text); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		for _, path := range slices.Sorted(maps.Keys(pools[name].Overrides)) {
			e.printf("# %s of pool %s was edited through the API\n", path, name)
		}
	}
	return nil
}

type configApplyCmd struct {
	File   string `arg:"" help:"The policy file; - is standard input."`
	DryRun bool   `help:"Only show what would change."`
}

// Run applies a file.
func (c *configApplyCmd) Run(ctx context.Context, e *env) error {
	text, _, err := e.readPolicy(c.File)
	if err != nil {
		return err
	}
	api, err := e.client()
	if err != nil {
		return err
	}
	applied, err := api.ApplyConfig(ctx, bytes.NewReader(text), c.DryRun)
	if err != nil {
		return err
	}
	if e.cli.JSON {
		return e.printJSON(applied)
	}
	for _, ch := range applied.Changes {
		e.printf("%s: %s -> %s\n", printable(ch.Path), orNone(ch.From), orNone(ch.To))
	}
	for _, path := range applied.KeptOverrides {
		e.printf("%s was edited through the API and stands over the file\n", printable(path))
	}
	switch {
	case len(applied.Changes) == 0:
		e.printf("nothing changes\n")
	case c.DryRun:
		e.printf("%d settings would change\n", len(applied.Changes))
	default:
		e.printf("%d settings changed\n", len(applied.Changes))
	}
	return nil
}

func orNone(s string) string {
	if s == "" {
		return "(not set)"
	}
	return printable(s)
}
