package app_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hostler-proxy/hostler/client"
	"github.com/hostler-proxy/hostler/internal/app"
	"github.com/hostler-proxy/hostler/internal/webhook"
)

// TestWebhook spends a budget and gets the events that were asked for, as the
// event stream gives them.
func TestWebhook(t *testing.T) {
	t.Parallel()
	type hook struct{ signature, at, body string }
	hooks := make(chan hook, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		hooks <- hook{r.Header.Get("Hostler-Signature"), r.Header.Get("Hostler-Timestamp"), string(body)}
	}))
	t.Cleanup(receiver.Close)
	d := start(t, func(o *app.Options) {
		o.RecoverEvery = 20 * time.Millisecond
		o.Webhook = app.Webhook{URL: receiver.URL + "/hook?key=hidden", Secret: "hidden-too", Events: []string{"budget_spent"}}
	})
	ctx := t.Context()
	_, err := d.api.PutPool(ctx, "default", map[string]any{"reuse_interval_ms": 0, "groups": map[string]any{
		"acme": map[string]any{"price_per_request": 1, "budget_day": 5},
	}})
	d.must(err)
	d.addTo("default", "acme", "10.0.0.1:3128")
	d.spend(5)
	var h hook
	select {
	case h = <-hooks:
	case <-time.After(20 * time.Second):
		t.Fatal("no webhook in 20 s")
	}
	if h.signature != "v1="+webhook.Sign("hidden-too", h.at, []byte(h.body)) {
		t.Errorf("signature %q of %s", h.signature, h.body)
	}
	var sent client.Event
	d.must(json.Unmarshal([]byte(h.body), &sent))
	kept, err := d.api.KeptEvents(ctx, 0)
	d.must(err)
	last := kept[len(kept)-1]
	if sent.ID = last.ID; sent != last || sent.Event != "budget_spent" || sent.Subject != "acme" {
		t.Errorf("sent %+v, the stream has %+v", sent, last)
	}
	if after, err := d.api.KeptEvents(ctx, last.ID); err != nil || len(after) != 0 {
		t.Errorf("after the last: %+v, %v", after, err)
	}
	d.stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	if strings.Contains(d.log.String(), "hidden") {
		t.Errorf("the log holds a secret:\n%s", d.log)
	}
}

func TestWebhookThatCannotBe(t *testing.T) {
	for _, w := range []app.Webhook{{URL: "hidden"}, {URL: "https://a.example/hidden", Events: []string{"budget_sent"}}} {
		_, err := app.New(t.Context(), app.Options{Listen: "127.0.0.1:0", Store: t.TempDir() + "/h.db", Webhook: w, Log: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), "--webhook") || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%v", err)
		}
	}
}
