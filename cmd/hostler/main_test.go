package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"hostler": func() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// TestScripts runs the command line as a person would; each script is a story.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":   exits,
			"waitfor": waitFor,
			"foreign": foreignStore,
			"newer":   newerStore,
			"do":      do,
			"lease":   takeLease,
			"mode":    wantMode,
			"damage":  damage,
			"envfile": envFile,
			"lab":     startLab,
		},
		Setup: func(e *testscript.Env) error {
			port, err := freePort()
			e.Setenv("ADDR", port)
			e.Setenv("HOSTLER_URL", "http://"+port)
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("GORACE", "atexit_sleep_ms=0") // else each process of a race build waits a second at its end
			return err
		},
	})
}
