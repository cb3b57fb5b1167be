// Hostler lends proxies to the workers of a scraping cluster.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"github.com/hostler-proxy/hostler/client"
	"github.com/hostler-proxy/hostler/internal/app"
)

// Exit codes.
const (
	exitDone        = 0
	exitFailed      = 1 // the thing asked for did not succeed
	exitUsage       = 2 // wrong usage or configuration
	exitUnreachable = 3 // the server is not reachable
)

// cli is the command line.
type cli struct {
	Server    string `help:"The daemon's URL." env:"HOSTLER_URL" default:"http://127.0.0.1:7070" placeholder:"URL"`
	Token     string `help:"The token to send." env:"HOSTLER_TOKEN" placeholder:"TOKEN"`
	JSON      bool   `help:"Print JSON." name:"json"`
	LogFormat string `help:"Form of the log: text or json." enum:"text,json" default:"text"`
	LogLevel  string `help:"Least level of the log: debug, info, warn or error." enum:"debug,info,warn,error" default:"info"`

	Serve      serveCmd      `cmd:"" help:"Run the daemon."`
	Demo       demoCmd       `cmd:"" help:"Show everything at work on this machine: proxies leased, cooled, recovered, scored."`
	DemoWorker demoWorkerCmd `cmd:"" hidden:"" help:"A worker of the demo."`
	Proxies    proxiesCmd    `cmd:"" help:"Bring proxies in, look at them, pause and remove them."`
	Sources    sourcesCmd    `cmd:"" help:"Show where proxies come from, fetch them now, accept a small set."`
	Pools      poolsCmd      `cmd:"" help:"Show the pools and their numbers."`
	Leases     leasesCmd     `cmd:"" help:"Show the live leases, and take them back."`
	Workers    workersCmd    `cmd:"" help:"Show the workers."`
	Targets    targetsCmd    `cmd:"" help:"Show the targets."`
	Failures   failuresCmd   `cmd:"" help:"Show failed attempts and requests."`
	Events     eventsCmd     `cmd:"" help:"Show events."`
	Waiters    waitersCmd    `cmd:"" help:"Show who waits for a proxy."`
	Capacity   capacityCmd   `cmd:"" help:"Tell what a pool can do for a target, or could with other numbers."`
	Ramp       rampCmd       `cmd:"" help:"Find out how many requests at once a target bears."`
	Config     configCmd     `cmd:"" help:"Check, show and apply the policy."`
	Tokens     tokenCmd      `cmd:"" name:"token" help:"Make, list and revoke API tokens."`
	Groups     groupsCmd     `cmd:"" help:"Show the groups that share an account, and release them."`
	Sessions   sessionsCmd   `cmd:"" help:"Show, move and end sessions."`
	Audit      auditCmd      `cmd:"" help:"Show what operators did."`
	Store      storeCmd      `cmd:"" help:"Check, back up, export and import the store."`
	Doctor     doctorCmd     `cmd:"" help:"Look for what is wrong, and say what to do."`
	Version    versionCmd    `cmd:"" help:"Show the version."`
	Completion completionCmd `cmd:"" help:"Print a shell's completion script."`
}

// env is what commands work with.
type env struct {
	cli    *cli
	parser *kong.Kong
	in     io.Reader
	out    io.Writer
	errs   io.Writer
	person bool // somebody sits at a terminal and can be asked
}

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is main without the process: tests call it.
func run(args []string, in io.Reader, out, errs io.Writer) int {
	var c cli
	code := -1
	parser, err := kong.New(&c, kong.Name("hostler"),
		kong.Description("Hostler lends proxies to the workers of a scraping cluster, takes them back with an outcome, and rests the tired ones."),
		kong.Writers(out, errs), kong.UsageOnError(), kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Exit(func(n int) { code = n; panic(exiting{}) }))
	if err != nil {
		_, _ = fmt.Fprintln(errs, "hostler:", err)
		return exitUsage
	}
	e := &env{cli: &c, parser: parser, in: in, out: out, errs: errs, person: terminal(in) && terminal(errs)}
	parsed, done := parse(parser, args, errs, &code)
	if done {
		return code
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	parsed.BindTo(ctx, (*context.Context)(nil))
	if err := parsed.Run(e); err != nil {
		return e.fail(err)
	}
	return exitDone
}

// exiting unwinds after kong printed its help.
type exiting struct{}

// parse reads the arguments; done is true when there is nothing left to run.
func parse(parser *kong.Kong, args []string, errs io.Writer, code *int) (parsed *kong.Context, done bool) {
	defer func() {
		if v := recover(); v != nil {
			if _, ours := v.(exiting); !ours {
				panic(v)
			}
			done = true
		}
	}()
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		_, _ = fmt.Fprintf(errs, "hostler: %v\nhostler --help shows what there is.\n", err)
		*code = exitUsage
		return nil, true
	}
	return parsed, false
}

// errNotMet says that a command printed already why it did not succeed.
var errNotMet = errors.New("not met")

// fail prints an error in a sentence and gives the exit code.
func (e *env) fail(err error) int {
	var usage *app.UsageError
	var problem *client.Problem
	switch {
	case errors.Is(err, errNotMet):
		return exitFailed
	case errors.As(err, &usage):
		_, _ = fmt.Fprintln(e.errs, "hostler:", err)
		return exitUsage
	case errors.Is(err, client.ErrUnreachable):
		_, _ = fmt.Fprintf(e.errs, "hostler: %v\nStart it with hostler serve, or name another with --server or HOSTLER_URL.\n", err)
		return exitUnreachable
	case errors.As(err, &problem) && problem.Status == 401:
		_, _ = fmt.Fprintf(e.errs, "hostler: %v\nGive a token with --token or HOSTLER_TOKEN.\n", err)
		return exitFailed
	case errors.As(err, &problem) && problem.Slug() == "invalid-request":
		_, _ = fmt.Fprintln(e.errs, "hostler:", err)
		return exitUsage
	default:
		_, _ = fmt.Fprintln(e.errs, "hostler:", err)
		return exitFailed
	}
}

// client speaks to the daemon that the flags name.
func (e *env) client() (*client.Client, error) {
	c, err := client.New(e.cli.Server, client.WithToken(e.cli.Token))
	if err != nil {
		return nil, &app.UsageError{Text: "--server: " + err.Error()}
	}
	return c, nil
}

// log makes the daemon's log, on standard error.
func (e *env) log() *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(e.cli.LogLevel)) // one of the four by kong's check
	options := &slog.HandlerOptions{Level: level}
	if e.cli.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(e.errs, options))
	}
	return slog.New(slog.NewTextHandler(e.errs, options))
}

// terminal says whether a reader or writer is a terminal.
func terminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
