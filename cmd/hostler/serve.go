package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hostler-proxy/hostler/internal/app"
)

type serveCmd struct {
	Listen          string        `help:"Address of the API." default:"127.0.0.1:7070" placeholder:"HOST:PORT"`
	Store           string        `help:"File of the store." default:"hostler.db" placeholder:"FILE"`
	Config          string        `help:"Policy file." short:"c" placeholder:"FILE"`
	Proxies         string        `help:"A list of proxies to bring in at the start." placeholder:"FILE"`
	AllowSpecial    bool          `help:"Take proxies at private and other special-purpose addresses from that list."`
	Host            []string      `help:"A further name under which requests without a token are taken." placeholder:"NAME"`
	Webhook         string        `help:"Send events to this URL; it is signed with the secret in HOSTLER_WEBHOOK_SECRET." env:"HOSTLER_WEBHOOK_URL" placeholder:"URL"`
	WebhookEvents   []string      `help:"Send only these events." placeholder:"NAME"`
	WebhookCooldown time.Duration `help:"How long further events of one name and subject are left out after one was sent." default:"10m"`
	FullSync        bool          `help:"Fsync every commit: survives a power cut, slower."`
}

// Run serves until a signal.
func (c *serveCmd) Run(ctx context.Context, e *env) error {
	a, err := app.New(ctx, app.Options{
		Listen: c.Listen, Store: c.Store, Config: c.Config, Proxies: c.Proxies, AllowSpecial: c.AllowSpecial, Hosts: c.Host,
		FullSync: c.FullSync, Log: e.log(),
		Webhook: app.Webhook{
			URL: c.Webhook, Secret: os.Getenv("HOSTLER_WEBHOOK_SECRET"), Events: c.WebhookEvents, Cooldown: c.WebhookCooldown,
		},
	})
	if err != nil {
		return err
	}
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	return a.Run(ctx, hup)
}
