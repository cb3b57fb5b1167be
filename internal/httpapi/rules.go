package httpapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/hostler-proxy/hostler/internal/config"
	"github.com/hostler-proxy/hostler/internal/keeper"
	"github.com/hostler-proxy/hostler/internal/rules"
	"github.com/hostler-proxy/hostler/internal/store"
)

// rulesOf tells a lease's holder which body rules hold, and where they are.
func rulesOf(l *keeper.Lease) rulesBody {
	if l.Rules == "" {
		return rulesBody{}
	}
	return rulesBody{ETag: l.Rules, URL: "/v1/targets/" + url.PathEscape(l.Target) + "/rules?pool=" + url.QueryEscape(l.Pool)}
}

type targetRulesBody struct {
	Target string          `json:"target"`
	Pool   string          `json:"pool"`
	ETag   string          `json:"etag"`
	Rules  json.RawMessage `json:"rules"`
}

// targetRules hands out the body rules of a target; 304 to whoever has them.
func (s *Server) targetRules(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	if err := onlyQuery(q, "pool"); err != nil {
		return err
	}
	poolName := poolOf(q)
	target, set, err := s.k.TargetRules(poolName, r.PathValue("target"))
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "private, no-cache") // to be kept, and asked for again
	w.Header().Set("ETag", `"`+set.ETag()+`"`)
	if matches(r.Header.Values("If-None-Match"), set.ETag()) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return writeJSON(w, http.StatusOK, targetRulesBody{target, poolName, set.ETag(), json.RawMessage(rules.Format(set.Rules()))})
}

// matches says whether one of the etags in If-None-Match is this one (RFC 9110,
// 13.1.2: compared weakly).
func matches(headers []string, etag string) bool {
	for _, line := range headers {
		for part := range strings.SplitSeq(line, ",") {
			part = strings.TrimSpace(part)
			if part == "*" || strings.TrimPrefix(part, "W/") == `"`+etag+`"` {
				return true
			}
		}
	}
	return false
}

// addRules puts the settings of body rules into a policy as JSON.
func addRules(out map[string]any, targets map[string]map[string]any, r *store.PolicyRecord) {
	for path, value := range config.RuleSettings(r.File, r.Overrides) {
		rest, ofTarget := strings.CutPrefix(path, "targets.")
		if !ofTarget {
			out[path] = json.RawMessage(value)
			continue
		}
		i := strings.LastIndexByte(rest, '.')
		name, setting := rest[:i], rest[i+1:]
		if targets[name] == nil {
			targets[name] = map[string]any{}
		}
		targets[name][setting] = json.RawMessage(value)
	}
}

// ruleEdit is what an edit of a target says of its body rules; null, or left out,
// takes an earlier edit back.
type ruleEdit struct {
	Rules        json.RawMessage `json:"rules"`
	DefaultRules *bool           `json:"default_rules"`
}

func (e *ruleEdit) edit(prefix string, into config.Settings) {
	into[prefix+"rules"], into[prefix+"default_rules"] = "", ""
	if len(e.Rules) > 0 && string(e.Rules) != "null" {
		var line bytes.Buffer
		_ = json.Compact(&line, e.Rules) // it was decoded already
		into[prefix+"rules"] = line.String()
	}
	if e.DefaultRules != nil {
		into[prefix+"default_rules"] = strconv.FormatBool(*e.DefaultRules)
	}
}
