package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/hostler-proxy/hostler/internal/app"
	"github.com/hostler-proxy/hostler/internal/demo"
)

type demoCmd struct {
	Duration time.Duration `help:"How long requests are issued." default:"20s"`
	Workers  int           `help:"Worker processes; the second is killed in mid-run." default:"3"`
	Serve    bool          `help:"Keep the daemon up afterwards, to look around."`
	Listen   string        `help:"Address of the API; port 0 takes a free one." default:"127.0.0.1:0" placeholder:"HOST:PORT"`
	Seed     uint64        `help:"Seed of the lab." default:"1"`
}

// Run runs the demo; it succeeds only if everything it promises was seen.
func (c *demoCmd) Run(ctx context.Context, e *env) error {
	if c.Duration < 10*time.Second || c.Duration > 24*time.Hour {
		return &app.UsageError{Text: "--duration: at least 10s, since cooldowns must be seen to end, and at most 24h"}
	}
	if c.Workers < 2 || c.Workers > 50 {
		return &app.UsageError{Text: "--workers: 2 to 50, since one is killed"}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	progress := e.out
	if e.cli.JSON {
		progress = e.errs
	}
	log := slog.New(slog.DiscardHandler)
	if e.cli.LogLevel == "debug" {
		log = e.log()
	}
	sum, err := demo.Run(ctx, demo.Options{
		Duration: c.Duration, Workers: c.Workers, Serve: c.Serve, Listen: c.Listen, Seed: c.Seed, Executable: self,
		Progress: progress, Terminal: terminal(progress), Log: log,
	})
	if err != nil {
		return err
	}
	if e.cli.JSON {
		err = e.printJSON(sum)
	} else {
		_, err = io.WriteString(e.out, sum.Text())
	}
	if err == nil && len(sum.Errors) > 0 {
		err = errNotMet
	}
	return err
}

type demoWorkerCmd struct {
	Feeder      string `required:""`
	Name        string `required:""`
	Concurrency int    `default:"6"`
	CA          string `required:"" name:"ca"`
}

// Run works until the feeder sends it home.
func (c *demoWorkerCmd) Run(ctx context.Context, e *env) error {
	return demo.Work(ctx, demo.WorkerOptions{
		Server: e.cli.Server, Feeder: c.Feeder, Name: c.Name, Concurrency: c.Concurrency, CA: c.CA,
	})
}
