// Package redistest starts real Redis servers for tests.
package redistest

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Start starts a server on a free loopback port for the length of a test and
// gives its address. args are further words of its command line, such as
// --requirepass. Without the program redis-server the test is skipped; where
// CI=true it fails.
func Start(t *testing.T, args ...string) string {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("redis-server is missing: install the package redis-server, or run make redis")
		}
		t.Skip("redis-server is missing: make redis installs it")
	}
	_, port, err := net.SplitHostPort(freePort(t))
	if err != nil {
		t.Fatal(err)
	}
	words := append([]string{"--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", t.TempDir()}, args...)
	cmd := exec.CommandContext(t.Context(), program, words...) //nolint:gosec // the program that was looked up; it ends with the test, before its clean-up
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // killed: its state says nothing
	address := "127.0.0.1:" + port
	if err := await(t.Context(), address); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Fatalf("redis-server does not answer: %v\n%s", err, out.String())
	}
	return address
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nothing to save
	return l.Addr().String()
}

// await waits until the server answers, be it that it wants a password.
func await(ctx context.Context, address string) error {
	deadline := time.Now().Add(10 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ping(ctx, address)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		<-tick.C
	}
}

func ping(ctx context.Context, address string) error {
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // nothing to save
	if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := fmt.Fprint(c, "PING\r\n"); err != nil {
		return err
	}
	answer, err := bufio.NewReader(c).ReadString('\n')
	if err == nil && !strings.HasPrefix(answer, "+PONG") && !strings.HasPrefix(answer, "-NOAUTH") {
		return fmt.Errorf("it answers %q", answer)
	}
	return err
}
