package source

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/hostler-proxy/hostler/internal/proxy"
)

// Kind is where a source's proxies come from.
type Kind string

// The kinds.
const (
	KindFile   Kind = "file"
	KindURL    Kind = "url"
	KindJSON   Kind = "json"   // an API, read by a mapping
	KindPreset Kind = "preset" // a provider's gateway, made from parameters
)

// Source is one source as an operator describes it. Texts that go out with a
// request may hold ${NAME}s, which stand for values of the environment.
type Source struct {
	Name string
	Kind Kind
	Pool string

	File    string
	URL     string
	Mapping Mapping
	Preset  string
	Params  map[string]string

	Interval, Timeout time.Duration
	MaxBytes          int64

	Headers, Query     map[string]string
	Username, Password string // of HTTP basic authentication

	// What holds for all proxies that do not say otherwise.
	Format        proxy.Format
	Scheme        proxy.Scheme
	Exit          string
	Region, Group string
	Labels        map[string]string
	Cap           int
	TTL           time.Duration
	AllowSpecial  bool
}

// FieldError is a fault of one setting.
type FieldError struct{ Path, Text string }

// Error gives the setting and the fault.
func (e *FieldError) Error() string { return e.Path + ": " + e.Text }

func fault(path, format string, args ...any) error {
	return &FieldError{path, fmt.Sprintf(format, args...)}
}

// Parse makes a source of its settings. Its error is a *FieldError.
func Parse(name string, settings map[string]string) (*Source, error) {
	s := &Source{
		Name: name, Pool: "default", Interval: time.Hour, Timeout: 30 * time.Second, MaxBytes: 64 << 20,
		Params: map[string]string{}, Headers: map[string]string{}, Query: map[string]string{}, Labels: map[string]string{},
		Mapping: Mapping{Fields: map[string]string{}, MaxPages: 100},
	}
	for _, path := range slices.Sorted(maps.Keys(settings)) {
		if err := set(s, path, settings[path]); err != nil {
			return nil, &FieldError{path, err.Error()}
		}
	}
	return s, s.check(settings)
}

// check wants what no single setting can say: one origin, and settings that fit it.
func (s *Source) check(settings map[string]string) error {
	var kinds []Kind
	for _, k := range []struct {
		kind Kind
		path string
	}{{KindFile, "file"}, {KindURL, "url"}, {KindJSON, "json.url"}, {KindPreset, "preset"}} {
		if settings[k.path] != "" {
			kinds = append(kinds, k.kind)
		}
	}
	if len(kinds) != 1 {
		return fault("file", "name exactly one of file, url, json.url and preset")
	}
	s.Kind = kinds[0]
	means := onlyFor()
	for _, path := range slices.Sorted(maps.Keys(settings)) {
		section, _, _ := strings.Cut(path, ".")
		if only := means[section]; only != nil && !slices.Contains(only, s.Kind) {
			return fault(path, "means nothing for a source of the kind %s", s.Kind)
		}
	}
	switch s.Kind {
	case KindJSON:
		if err := s.Mapping.check(); err != nil {
			return err
		}
	case KindPreset:
		if _, err := s.Templates(placeholder); err != nil {
			return err
		}
	case KindFile, KindURL:
	}
	if (s.Username == "") != (s.Password == "") {
		return fault("basic.username", "basic authentication takes both username and password")
	}
	return nil
}

// placeholder stands for any value of the environment while a file is checked.
func placeholder(string) (string, bool) { return "x", true }

// onlyFor lists the settings that mean something for some kinds only.
func onlyFor() map[string][]Kind {
	return map[string][]Kind{
		"json": {KindJSON}, "headers": {KindURL, KindJSON}, "query": {KindURL, KindJSON}, "basic": {KindURL, KindJSON},
		"timeout": {KindURL, KindJSON}, "params": {KindPreset}, "max_bytes": {KindFile, KindURL, KindJSON}, "format": {KindFile, KindURL},
	}
}

// Where is the file or the URL, without userinfo and query, or the preset: what
// can be shown.
func (s *Source) Where() string {
	switch s.Kind {
	case KindFile:
		return s.File
	case KindPreset:
		return s.Preset
	case KindURL, KindJSON:
	}
	return shownURL(s.URL)
}

// shownURL cuts off whatever can hold credentials.
func shownURL(text string) string {
	text, _, _ = strings.Cut(text, "#")
	text, _, _ = strings.Cut(text, "?")
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return "..."
	}
	host, path, slash := strings.Cut(rest, "/")
	host = host[strings.LastIndexByte(host, '@')+1:]
	if slash {
		host += "/" + path
	}
	return scheme + "://" + host
}

// Shown gives settings as they can be shown: values that may be credentials only
// if they are ${NAME}s and nothing else.
func Shown(settings map[string]string) map[string]string {
	out := maps.Clone(settings)
	for path, value := range settings {
		section, _, _ := strings.Cut(path, ".")
		switch {
		case path == "url" || path == "json.url":
			out[path] = shownURL(value)
		case (section == "headers" || section == "query" || section == "basic" || path == "params.password" || path == "params.username") &&
			!onlyVariables(value):
			out[path] = "***"
		}
	}
	return out
}

// checkURL says whether a URL can be a source.
func checkURL(text string) error {
	plain, err := expand(text, func(string) (string, bool) { return "x", true }, asIs)
	if err != nil {
		return err
	}
	u, err := url.Parse(plain)
	switch {
	case err != nil:
		return errors.New("is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("must begin with http:// or https://")
	case u.Hostname() == "":
		return errors.New("names no host")
	case u.User != nil:
		return errors.New("holds credentials: give them as basic.username and basic.password, from ${NAME}s of the environment")
	case u.Fragment != "":
		return errors.New("has a fragment (#), which no server gets")
	}
	if before, _, ok := strings.Cut(text, "${"); ok && strings.Count(before, "/") < 3 {
		return errors.New("a ${NAME} may stand in path and query, not in scheme or host")
	}
	_, query, _ := strings.Cut(text, "?")
	for part := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(part, "=")
		if secretName(name) && !hasVariable(value) {
			return fmt.Errorf("%s looks like a credential: write ${NAME} for its value and put it into the environment", name)
		}
	}
	return nil
}

// secretName says whether a header or parameter is likely to carry a credential.
func secretName(name string) bool {
	name = strings.ToLower(name)
	for _, word := range []string{"auth", "token", "key", "secret", "pass", "cookie", "credential", "signature"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}
