package main

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/hostler-proxy/hostler/client"
	"github.com/hostler-proxy/hostler/internal/lab"
)

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close() //nolint:errcheck // nothing to save
	return l.Addr().String(), nil
}

// exits runs a command and demands its exit code: exits 2 hostler ...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if neg {
		ts.Fatalf("exits takes no !")
	}
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// waitFor waits until the daemon of the script serves.
func waitFor(ts *testscript.TestScript, _ bool, _ []string) {
	api, err := client.New(ts.Getenv("HOSTLER_URL"))
	ts.Check(err)
	deadline := time.Now().Add(15 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for time.Now().Before(deadline) {
		err = api.Ready(context.Background())
		if err == nil || !errors.Is(err, client.ErrUnreachable) {
			return
		}
		<-tick.C
	}
	ts.Fatalf("the daemon does not answer: %v", err)
}

// startLab starts a site that takes 60 requests a second from an address, and a
// proxy to it: lab FILE writes the list, $SITE is the site's page.
func startLab(ts *testscript.TestScript, _ bool, args []string) {
	l, err := lab.Start(context.Background(), lab.Options{
		Seed:    1,
		Targets: []lab.TargetSpec{{Name: "limited", Kind: lab.LimitedTarget, Rate: 60, Burst: 3, Latency: 40 * time.Millisecond}},
		Proxies: []lab.ProxySpec{{Kind: lab.Good, Count: 1, Auth: true}},
	})
	ts.Check(err)
	ts.Defer(func() { ts.Check(l.Close()) })
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(l.Proxies()[0].ListLine()+"\n"), 0o600))
	ts.Setenv("SITE", l.Targets()[0].URL+"/item")
}

func foreignStore(ts *testscript.TestScript, _ bool, args []string) {
	sqlFile(ts, args[0], "CREATE TABLE theirs (x); PRAGMA application_id = 7;")
}

func newerStore(ts *testscript.TestScript, _ bool, args []string) {
	sqlFile(ts, args[0], "CREATE TABLE later (x); PRAGMA application_id = 1213158228; PRAGMA user_version = 999;")
}

func sqlFile(ts *testscript.TestScript, name, script string) {
	db, err := sqlite.OpenConn(ts.MkAbs(name), sqlite.OpenReadWrite|sqlite.OpenCreate)
	ts.Check(err)
	defer db.Close() //nolint:errcheck // checked by who reads it
	for statement := range strings.SplitSeq(script, ";") {
		if strings.TrimSpace(statement) != "" {
			ts.Check(sqlitex.ExecuteTransient(db, statement, nil))
		}
	}
}
