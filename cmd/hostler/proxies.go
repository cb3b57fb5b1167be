package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hostler-proxy/hostler/client"
	"github.com/hostler-proxy/hostler/internal/app"
)

type proxiesCmd struct {
	Import proxiesImportCmd `cmd:"" help:"Bring a list in from a file, standard input or Redis."`
	Add    proxiesAddCmd    `cmd:"" help:"Bring single proxies in."`
	List   proxiesListCmd   `cmd:"" help:"List proxies."`
	Export proxiesExportCmd `cmd:"" help:"Write proxies out as a list that can be imported again."`
	Pause  proxiesPauseCmd  `cmd:"" help:"Take proxies out of service."`
	Drain  proxiesDrainCmd  `cmd:"" help:"Grant no new leases on proxies; those that run go on."`
	Resume proxiesResumeCmd `cmd:"" help:"Put proxies back into service, through probation."`
	Rm     proxiesRmCmd     `cmd:"" help:"Remove proxies; each goes when its last lease ends."`
	Why    proxiesWhyCmd    `cmd:"" help:"Say why a proxy is where it is."`
}

type importFlags struct {
	Pool         string            `help:"The pool." default:"default"`
	Scheme       string            `help:"Scheme of lines that name none." default:"http"`
	Exit         string            `help:"Exit kind: static, rotating or template." placeholder:"KIND"`
	Region       string            `help:"Region of all." placeholder:"NAME"`
	Group        string            `help:"Group of all: proxies that share an account." placeholder:"NAME"`
	Label        map[string]string `help:"Label of all." placeholder:"K=V"`
	Cap          int               `help:"Most live leases of each; 0 takes the policy's."`
	TTL          time.Duration     `help:"They expire that long after now." name:"ttl" placeholder:"DURATION"`
	AllowSpecial bool              `help:"Take private and other special-purpose addresses."`
}

func (f *importFlags) options(source string) client.ImportOptions {
	return client.ImportOptions{
		Pool: f.Pool, Scheme: f.Scheme, Exit: f.Exit, Region: f.Region, Group: f.Group, Source: source, Labels: f.Label, Cap: f.Cap,
		TTL: f.TTL, AllowSpecial: f.AllowSpecial,
	}
}

type proxiesAddCmd struct {
	importFlags
	Proxy []string `arg:"" help:"A proxy, such as http://user:pass@host:8080."`
}

// Run adds proxies from the command line.
func (c *proxiesAddCmd) Run(ctx context.Context, e *env) error {
	return e.importList(ctx, strings.NewReader(strings.Join(c.Proxy, "\n")), c.options(""))
}

type filterFlags struct {
	Pool   string `help:"The pool." default:"default"`
	State  string `help:"Only those in a state." placeholder:"STATE"`
	Group  string `help:"Only those of a group." placeholder:"NAME"`
	Region string `help:"Only those of a region." placeholder:"NAME"`
	Source string `help:"Only those of a source." placeholder:"NAME"`
	Label  string `help:"Only those with a label." placeholder:"K=V"`
}

func (f *filterFlags) filter() client.ProxyFilter {
	return client.ProxyFilter{Pool: f.Pool, State: f.State, Group: f.Group, Region: f.Region, Source: f.Source, Label: f.Label}
}

type proxiesListCmd struct {
	filterFlags
	View  string `help:"Only those that are ready, leased or full." placeholder:"VIEW"`
	Sort  string `help:"Order: added, score, last_used, in_use, streak or uses." default:"added"`
	Limit int    `help:"At most that many; 0 = all." default:"50"`
}

// Run lists proxies.
func (c *proxiesListCmd) Run(ctx context.Context, e *env) error {
	api, err := e.client()
	if err != nil {
		return err
	}
	f := c.filter()
	f.View, f.Sort, f.Limit = c.View, c.Sort, c.Limit
	var list []client.Proxy
	more := ""
	if c.Limit == 0 {
		list, err = api.AllProxies(ctx, f)
	} else {
		list, more, err = api.Proxies(ctx, f)
	}
	if err != nil {
		return err
	}
	if e.cli.JSON {
		return e.printJSON(map[string]any{"proxies": list, "cursor": more})
	}
	t := newTable("ID", "PROXY", "STATE", "UNTIL", "USE", "10 MIN", "HOUR", "DAY", "SCORE", "LAST", "USED")
	for _, p := range list {
		t.add(p.ID[:8], fmt.Sprintf("%s://%s:%d", p.Scheme, p.Host, p.Port), p.State, left(p.Until),
			fmt.Sprintf("%d/%d", p.InUse, p.EarnedCap), percent(p.Windows.Ten.Rate), percent(p.Windows.Hour.Rate), percent(p.Windows.Day.Rate),
			fmt.Sprintf("%.2f", p.Score), p.LastClass, ago(p.LastUsedAt))
	}
	if err := t.print(e.out); err != nil {
		return err
	}
	if more != "" {
		e.printf("there are more: --limit 0 lists all\n")
	}
	return nil
}

// resolve finds whole ids for their first characters.
func (e *env) resolve(ctx context.Context, api *client.Client, pool string, prefixes []string) ([]string, error) {
	var ids []string
	var all []client.Proxy
	for _, prefix := range prefixes {
		if len(prefix) == 32 {
			ids = append(ids, prefix)
			continue
		}
		if all == nil {
			var err error
			if all, err = api.AllProxies(ctx, client.ProxyFilter{Pool: pool}); err != nil {
				return nil, err
			}
		}
		found := ""
		for _, p := range all {
			if !strings.HasPrefix(p.ID, prefix) {
				continue
			}
			if found != "" {
				return nil, &app.UsageError{Text: fmt.Sprintf("%s begins more than one id: give more of it", prefix)}
			}
			found = p.ID
		}
		if found == "" {
			return nil, fmt.Errorf("no proxy of pool %s has an id that begins with %s", pool, prefix)
		}
		ids = append(ids, found)
	}
	return ids, nil
}

type proxiesWhyCmd struct {
	Pool string `help:"The pool." default:"default"`
	ID   string `arg:"" help:"The id, or its first characters."`
}

// Run says why a proxy is where it is.
func (c *proxiesWhyCmd) Run(ctx context.Context, e *env) error {
	api, err := e.client()
	if err != nil {
		return err
	}
	ids, err := e.resolve(ctx, api, c.Pool, []string{c.ID})
	if err != nil {
		return err
	}
	why, err := api.Why(ctx, c.Pool, ids[0])
	if err != nil {
		return err
	}
	if e.cli.JSON {
		return e.printJSON(why)
	}
	return e.printWhy(why)
}

func (e *env) printWhy(why *client.Why) error {
	p := &why.Proxy
	e.printf("%s  %s://%s:%d  %s\n%s\n", p.ID, p.Scheme, printable(p.Host), p.Port, p.State, printable(why.Because))
	e.printf("score %.2f; success %s of %d in 10 min, %s of %d in an hour, %s of %d today; last outcome %s\n", p.Score,
		percent(p.Windows.Ten.Rate), p.Windows.Ten.Total, percent(p.Windows.Hour.Rate), p.Windows.Hour.Total,
		percent(p.Windows.Day.Rate), p.Windows.Day.Total, p.LastClass)
	for _, h := range why.Holds {
		e.printf("rests for %s, %s left\n", h.Cause, left(&h.Until))
	}
	for _, pair := range why.Pairs {
		for _, h := range pair.Holds {
			e.printf("on %s: rests for %s, %s left (%d in a row)\n", printable(pair.Target), h.Cause, left(&h.Until), pair.Streak)
		}
	}
	if len(why.Failures) == 0 {
		return nil
	}
	e.printf("last failures:\n")
	return failureTable(why.Failures).print(e.out)
}
