package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/hostler-proxy/hostler/client"
)

// do runs a command in this process, which saves the start of another, and
// demands its exit code: do 2 proxies pause. It reads no files of the script.
func do(ts *testscript.TestScript, _ bool, args []string) {
	server := []string{"--server", ts.Getenv("HOSTLER_URL"), "--token", ts.Getenv("HOSTLER_TOKEN")}
	code := run(append(server, args[1:]...), strings.NewReader(""), ts.Stdout(), ts.Stderr())
	if got := fmt.Sprint(code); got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}

// takeLease leases a proxy for a session and a worker: lease SESSION WORKER.
func takeLease(ts *testscript.TestScript, _ bool, args []string) {
	api, err := client.New(ts.Getenv("HOSTLER_URL"))
	ts.Check(err)
	_, err = api.Acquire(context.Background(), client.AcquireRequest{
		Target: args[0] + ".example", Session: args[0], Worker: args[1], TTLMS: 600_000, WaitMS: 5_000,
	})
	ts.Check(err)
}

// wantMode demands a file's rights: mode 600 FILE.
func wantMode(ts *testscript.TestScript, _ bool, args []string) {
	info, err := os.Stat(ts.MkAbs(args[1]))
	ts.Check(err)
	if got := fmt.Sprintf("%o", info.Mode().Perm()); got != args[0] {
		ts.Fatalf("%s has mode %s, want %s", args[1], got, args[0])
	}
}

// damage takes a judgement out of a store.
func damage(ts *testscript.TestScript, _ bool, args []string) {
	sqlFile(ts, args[0], "DELETE FROM proxy_judge WHERE n = (SELECT max(n) FROM proxy_judge)")
}

// envFile sets a variable to a file's text: envfile NAME FILE.
func envFile(ts *testscript.TestScript, _ bool, args []string) {
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile(args[1])))
}

// TestSkew: how far two clocks may be apart, given how long the answer took.
func TestSkew(t *testing.T) {
	for _, c := range []struct {
		skew, took time.Duration
		status     string
		part       string
	}{
		{0, time.Millisecond, "ok", "agree"},
		{4 * time.Second, time.Millisecond, "ok", "agree"},
		{-20 * time.Second, 16 * time.Second, "ok", "agree"}, // the answer was under way for so long
		{10 * time.Second, time.Second, "warn", "9s ahead of"},
		{-10 * time.Second, time.Second, "warn", "9s behind"},
		{-time.Hour, time.Second, "fail", "behind"},
	} {
		got := skewCheck(c.skew, c.took)
		if got.Status != c.status || !strings.Contains(got.Text, c.part) || (got.Hint == "") != (c.status == "ok") {
			t.Errorf("%s in %s: %+v", c.skew, c.took, got)
		}
	}
	if got := versionCheck("v1", "v2"); got.Status != "warn" {
		t.Errorf("versions: %+v", got)
	}
}

// TestSure: a person is asked, and only a yes is one; elsewhere a grave act wants
// --yes, and nobody is asked.
func TestSure(t *testing.T) {
	for _, c := range []struct {
		name       string
		person     bool
		typed      string
		yes, grave bool
		code       int
		asked      bool
	}{
		{"yes", true, "y\n", false, true, exitDone, true},
		{"Yes, in full", true, " YES \n", false, false, exitDone, true},
		{"no", true, "n\n", false, false, exitFailed, true},
		{"enter", true, "\n", false, true, exitFailed, true},
		{"end of input", true, "", false, false, exitFailed, true},
		{"--yes", true, "", true, true, exitDone, false},
		{"a script, grave", false, "y\n", false, true, exitUsage, false},
		{"a script, grave, --yes", false, "", true, true, exitDone, false},
		{"a script", false, "", false, false, exitDone, false},
	} {
		var errs strings.Builder
		e := &env{in: strings.NewReader(c.typed), errs: &errs, person: c.person}
		code := exitDone
		err := e.sure("remove 3?", c.yes, c.grave)
		asked := strings.Contains(errs.String(), "[y/N]")
		if err != nil {
			code = e.fail(err)
		}
		if code != c.code || asked != c.asked {
			t.Errorf("%s: code %d, asked %v, said %q", c.name, code, asked, errs.String())
		}
	}
}
