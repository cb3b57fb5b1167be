package main

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/hostler-proxy/hostler/internal/app"
	"github.com/hostler-proxy/hostler/internal/redistest"
)

// TestImportFromRedis takes over what a pool of the article's kind keeps.
func TestImportFromRedis(t *testing.T) {
	const secret = "S3cr3t-MARK"
	address := redistest.Start(t, "--requirepass", secret)
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{address}, Password: secret, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	push := c.B().Rpush().Key("proxy:ready").Element("gw.example:80:u:p", `{"host":"b.example","port":81,"fail_count":0}`, "nonsense").Build()
	if err := c.Do(t.Context(), push).Error(); err != nil {
		t.Fatal(err)
	}
	a, err := app.New(t.Context(), app.Options{Listen: "127.0.0.1:0", Store: filepath.Join(t.TempDir(), "s.db"), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	a.Start(t.Context())
	t.Cleanup(func() {
		if err := a.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	for _, step := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--from-redis", "redis://" + address, "proxy:ready"}, exitFailed, "NOAUTH"},
		{[]string{"--from-redis", "redis://:" + secret + "@" + address, "absent"}, exitFailed, "holds nothing"},
		{[]string{"--from-redis", "redis://:" + secret + "@" + address, "proxy:ready"}, exitDone, "2 accepted, 0 updated, 0 duplicates, 1 rejected"},
	} {
		var out, errs bytes.Buffer
		code := run(append([]string{"--server", a.URL(), "proxies", "import"}, step.args...), strings.NewReader(""), &out, &errs)
		text := out.String() + errs.String()
		if code != step.code || !strings.Contains(text, step.want) || strings.Contains(text, secret) {
			t.Errorf("code %d: %s, want %d and %q", code, text, step.code, step.want)
		}
	}
	t.Setenv("HOSTLER_REDIS_PASSWORD", secret)
	var out bytes.Buffer
	if code := run([]string{"--server", a.URL(), "proxies", "import", "--from-redis", "redis://" + address, "proxy:ready"}, strings.NewReader(""), &out, &out); code != exitDone || !strings.Contains(out.String(), "2 duplicates") {
		t.Errorf("with the password from the environment: %d %s", code, out.String())
	}
}
