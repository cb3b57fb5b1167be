package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hostler-proxy/hostler/internal/config"
	"github.com/hostler-proxy/hostler/internal/keeper"
	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/store"
)

type poolBody struct {
	Name      string         `json:"name"`
	Proxies   int            `json:"proxies"`
	New       int            `json:"new"`
	Probation int            `json:"probation"`
	Active    int            `json:"active"`
	Cooling   int            `json:"cooling"`
	Suspended int            `json:"suspended"`
	Draining  int            `json:"draining"`
	Disabled  int            `json:"disabled"`
	Expired   int            `json:"expired"`
	Ready     int            `json:"ready"`
	Leased    int            `json:"leased"`
	Full      int            `json:"full"`
	Leases    leaseTotals    `json:"leases"`
	Version   int64          `json:"policy_version"`
	Overrides []string       `json:"overrides"`
	Policy    map[string]any `json:"policy"`
}

type leaseTotals struct {
	Open     int   `json:"open"`
	Granted  int64 `json:"granted"`
	Reported int64 `json:"reported"`
	Released int64 `json:"released"`
	Revoked  int64 `json:"revoked"`
	Expired  int64 `json:"expired"`
}

func poolOfInfo(p *store.PoolInfo) poolBody {
	c, t := &p.Counts, &p.Totals
	b := poolBody{
		Name: p.Name, Proxies: c.Proxies, New: c.Status[pool.StatusNew], Probation: c.Status[pool.StatusProbation],
		Active: c.Status[pool.StatusActive], Cooling: c.Status[pool.StatusCooling], Suspended: c.Status[pool.StatusSuspended],
		Draining: c.Status[pool.StatusDraining], Disabled: c.Status[pool.StatusDisabled], Expired: c.Status[pool.StatusExpired],
		Ready: c.Ready, Leased: c.Leased, Full: c.Full,
		Leases:  leaseTotals{c.Live, t.Granted, t.Reported, t.Released, t.Revoked, t.Expired},
		Version: p.Record.Policy.Version, Overrides: []string{}, Policy: policyOf(&p.Record.Policy),
	}
	for path := range p.Record.Overrides {
		b.Overrides = append(b.Overrides, path)
	}
	slices.Sort(b.Overrides)
	return b
}

// policyOf is a policy as JSON: the file's names, durations as _ms numbers.
func policyOf(p *pool.Policy) map[string]any {
	out := map[string]any{}
	for _, f := range config.Fields() {
		place, name := nest(out, f.Path)
		switch f.Kind {
		case "duration":
			place[name+"_ms"] = durationMS(f.Get(p))
		case "durations":
			list := []int64{}
			for part := range strings.SplitSeq(f.Get(p), ", ") {
				list = append(list, durationMS(part))
			}
			place[name+"_ms"] = list
		case "names":
			place[name] = namesOf(f.Get(p))
		case "number", "share", "switch":
			place[name] = json.RawMessage(f.Get(p))
		default:
			place[name] = f.Get(p)
		}
	}
	named := map[string]map[string]map[string]any{"targets": {}, "groups": {}}
	config.EachNamed(p, func(f config.NamedField, name, value string) {
		of := named[f.Section]
		if of[name] == nil {
			of[name] = map[string]any{}
		}
		switch f.Kind {
		case "duration":
			of[name][f.Setting+"_ms"] = durationMS(value)
		case "money", "number":
			of[name][f.Setting] = json.RawMessage(value)
		default:
			of[name][f.Setting] = value
		}
	})
	out["targets"], out["groups"] = named["targets"], named["groups"]
	return out
}

func namesOf(text string) []string {
	if text == "" {
		return []string{}
	}
	return strings.Split(text, ", ")
}

func nest(out map[string]any, path string) (place map[string]any, name string) {
	for {
		level, rest, ok := strings.Cut(path, ".")
		if !ok {
			return out, path
		}
		next, _ := out[level].(map[string]any)
		if next == nil {
			next = map[string]any{}
			out[level] = next
		}
		out, path = next, rest
	}
}

func durationMS(text string) int64 {
	d, _ := time.ParseDuration(text) // our own text
	return d.Milliseconds()
}

// settingsOf reads a policy as JSON into settings; null takes an edit back.
func settingsOf(prefix string, object map[string]any, into config.Settings) error {
	for name, value := range object {
		path := strings.TrimSuffix(prefix+name, "_ms")
		isMS := strings.HasSuffix(name, "_ms")
		switch v := value.(type) {
		case nil:
			into[path] = ""
		case map[string]any:
			if err := settingsOf(prefix+name+".", v, into); err != nil {
				return err
			}
		case []any:
			parts := make([]string, len(v))
			for i, item := range v {
				text, err := scalarOf(prefix+name, item, isMS)
				if err != nil {
					return err
				}
				parts[i] = text
			}
			into[path] = strings.Join(parts, ", ")
		default:
			text, err := scalarOf(prefix+name, value, isMS)
			if err != nil {
				return err
			}
			into[path] = text
		}
	}
	return nil
}

func scalarOf(field string, value any, isMS bool) (string, error) {
	switch v := value.(type) {
	case json.Number:
		if isMS {
			if _, err := strconv.ParseInt(v.String(), 10, 64); err != nil {
				return "", invalid(field, "must be a whole number of milliseconds")
			}
			return v.String() + "ms", nil
		}
		return v.String(), nil
	case string:
		if isMS {
			return "", invalid(field, "must be a whole number of milliseconds")
		}
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	default:
		return "", invalid(field, "must be a value")
	}
}

func (s *Server) listPools(w http.ResponseWriter, r *http.Request) error {
	if err := onlyQuery(r.URL.Query()); err != nil {
		return err
	}
	list, err := s.store.ListPools(r.Context())
	if err != nil {
		return err
	}
	out := []poolBody{}
	for i := range list {
		out = append(out, poolOfInfo(&list[i]))
	}
	return writeJSON(w, http.StatusOK, map[string]any{"pools": out})
}

func (s *Server) getPool(w http.ResponseWriter, r *http.Request) error {
	if err := onlyQuery(r.URL.Query()); err != nil {
		return err
	}
	info, err := s.store.Pool(r.Context(), r.PathValue("pool"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, poolOfInfo(&info))
}

// putPool edits a pool's policy over its file, and makes the pool if need be.
func (s *Server) putPool(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Policy json.RawMessage `json:"policy"`
	}
	if err := decode(w, r, maxBody, &body); err != nil {
		return err
	}
	settings := config.Settings{}
	if len(body.Policy) > 0 {
		d := json.NewDecoder(strings.NewReader(string(body.Policy)))
		d.UseNumber()
		var object map[string]any
		if err := d.Decode(&object); err != nil {
			return invalid("policy", "must be an object of settings")
		}
		if err := settingsOf("", object, settings); err != nil {
			return err
		}
	}
	name := r.PathValue("pool")
	if _, err := s.k.Override(r.Context(), name, settings); err != nil {
		return err
	}
	info, err := s.store.Pool(r.Context(), name)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, poolOfInfo(&info))
}

func (s *Server) deletePool(w http.ResponseWriter, r *http.Request) error {
	if err := s.k.DeletePool(r.Context(), r.PathValue("pool")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// getConfig shows every pool's policy as settings, and which were edited over the file.
func (s *Server) getConfig(w http.ResponseWriter, r *http.Request) error {
	list, err := s.store.ListPools(r.Context())
	if err != nil {
		return err
	}
	type poolConfig struct {
		Version   int64             `json:"version"`
		Settings  map[string]string `json:"settings"`
		File      map[string]string `json:"file"`
		Overrides map[string]string `json:"overrides"`
	}
	out := map[string]poolConfig{}
	for _, p := range list {
		c := poolConfig{p.Record.Policy.Version, config.Values(&p.Record.Policy), p.Record.File, p.Record.Overrides}
		if c.File == nil {
			c.File = map[string]string{}
		}
		if c.Overrides == nil {
			c.Overrides = map[string]string{}
		}
		out[p.Name] = c
	}
	return writeJSON(w, http.StatusOK, map[string]any{"pools": out})
}

type changeBody struct {
	Path string `json:"path"`
	From string `json:"from"`
	To   string `json:"to"`
}

// putConfig applies a policy file. It is the file's own text, not JSON.
func (s *Server) putConfig(w http.ResponseWriter, r *http.Request) error {
	if err := onlyQuery(r.URL.Query(), "dry_run"); err != nil {
		return err
	}
	dry, err := boolOf(r.URL.Query(), "dry_run")
	if err != nil {
		return err
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		return err
	}
	applied, err := s.k.ApplyText(r.Context(), text, dry)
	if err != nil {
		return configProblem(err)
	}
	return writeJSON(w, http.StatusOK, appliedOf(&applied, dry))
}

// configProblem names the first setting that is at fault.
func configProblem(err error) error {
	var fault *config.Error
	if !errors.As(err, &fault) {
		return err
	}
	p := invalid(fault.Path, fault.Text)
	p.Detail = strings.ReplaceAll(err.Error(), "\n", "; ")
	return p
}

func appliedOf(a *keeper.Applied, dry bool) map[string]any {
	changes := []changeBody{}
	for _, c := range a.Changes {
		changes = append(changes, changeBody{c.Path, c.From, c.To})
	}
	kept := a.Kept
	if kept == nil {
		kept = []string{}
	}
	return map[string]any{"version": a.Version, "changes": changes, "kept_overrides": kept, "dry_run": dry}
}

type voteBody struct {
	OK     int32 `json:"ok"`
	Failed int32 `json:"failed"`
}

type targetBody struct {
	Target          string           `json:"target"`
	Pool            string           `json:"pool"`
	Verdict         string           `json:"verdict"`
	Holds           []slotBody       `json:"holds"`
	Votes           voteBody         `json:"votes"`
	InFlight        int              `json:"in_flight"`
	ReuseIntervalMS int64            `json:"reuse_interval_ms"`
	Resting         map[string]int   `json:"resting"`
	Requests        int64            `json:"requests"`
	Bytes           int64            `json:"bytes"`
	Money           moneyBody        `json:"money"`
	Windows         windowsBody      `json:"windows"`
	Classes         map[string]int64 `json:"classes"`
	LastUsedAt      timestamp        `json:"last_used_at"`
}

func classesOf(counts *[pool.NumClasses]int64) map[string]int64 {
	out := map[string]int64{}
	for class, n := range counts {
		if n > 0 {
			out[pool.Class(class).String()] = n
		}
	}
	return out
}

// targetOf shows a target. Its verdict is healthy as long as nothing judges it.
func targetOf(poolName string, v *pool.TargetView, at store.Moment) targetBody {
	return targetBody{
		Target: v.Name, Pool: poolName, Verdict: "healthy", Holds: []slotBody{}, Votes: voteBody{v.Votes.OK, v.Votes.Failed}, InFlight: v.InFlight,
		ReuseIntervalMS: v.Reuse.Milliseconds(), Resting: map[string]int{"reuse_interval": v.Resting[0], "pair_cooling": v.Resting[1]},
		Requests: v.Spend.Total.Requests, Bytes: v.Spend.Total.Bytes, Money: moneyOf(&v.Spend, at.Calendar, &v.Windows, at.Now, 0),
		Windows: windowsOf(&v.Windows, at.Now, at.Day), Classes: classesOf(&v.Classes), LastUsedAt: stamp(v.LastUsed),
	}
}

func (s *Server) targets(r *http.Request) ([]targetBody, error) {
	name := poolOf(r.URL.Query())
	res, err := s.store.Targets(r.Context(), name)
	if err != nil {
		return nil, err
	}
	out := []targetBody{}
	for i := range res.Targets {
		out = append(out, targetOf(name, &res.Targets[i], res.Moment))
	}
	return out, nil
}

func (s *Server) listTargets(w http.ResponseWriter, r *http.Request) error {
	if err := onlyQuery(r.URL.Query(), "pool"); err != nil {
		return err
	}
	list, err := s.targets(r)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]any{"targets": list})
}

func (s *Server) getTarget(w http.ResponseWriter, r *http.Request) error {
	list, err := s.targets(r)
	if err != nil {
		return err
	}
	name, err := keeper.TargetName(r.PathValue("target"))
	if err != nil {
		return err
	}
	for _, t := range list {
		if t.Target == name {
			return writeJSON(w, http.StatusOK, t)
		}
	}
	return problemOf(http.StatusNotFound, "unknown-target", "nothing was sent to this target yet")
}

// putTarget sets what differs for a target: an edit of the pool's policy.
func (s *Server) putTarget(w http.ResponseWriter, r *http.Request) error {
	if err := onlyQuery(r.URL.Query(), "pool"); err != nil {
		return err
	}
	var body struct {
		ReuseIntervalMS *int64 `json:"reuse_interval_ms"`
		MaxConcurrency  *int   `json:"max_concurrency"`
	}
	if err := decode(w, r, maxBody, &body); err != nil {
		return err
	}
	name, err := keeper.TargetName(r.PathValue("target"))
	if err != nil {
		return err
	}
	edits := config.Settings{"targets." + name + ".reuse_interval": "", "targets." + name + ".max_concurrency": ""}
	if body.ReuseIntervalMS != nil {
		edits["targets."+name+".reuse_interval"] = fmt.Sprintf("%dms", *body.ReuseIntervalMS)
	}
	if body.MaxConcurrency != nil {
		edits["targets."+name+".max_concurrency"] = strconv.Itoa(*body.MaxConcurrency)
	}
	poolName := poolOf(r.URL.Query())
	applied, err := s.k.Override(r.Context(), poolName, edits)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, appliedOf(&applied, false))
}
