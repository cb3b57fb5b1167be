package main

import (
	"runtime"
	"runtime/debug"
)

type versionCmd struct{}

// Run shows the version as the Go tool recorded it.
func (c *versionCmd) Run(e *env) error {
	version, revision := "unknown", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	if e.cli.JSON {
		return e.printJSON(map[string]string{"version": version, "revision": revision, "go": runtime.Version()})
	}
	e.printf("hostler %s (%s)\n", version, runtime.Version())
	return nil
}
