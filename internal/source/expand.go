package source

import (
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/hostler-proxy/hostler/internal/proxy"
)

// Environment looks a variable up.
type Environment func(name string) (value string, ok bool)

// UnsetError names a variable that the environment does not have.
type UnsetError struct{ Name string }

// Error says what to do.
func (e *UnsetError) Error() string {
	return "the environment of the daemon has no " + e.Name + ": set it, and start the daemon again"
}

// asIs takes a value as it is; inURL escapes it for path or query.
func asIs(v string) string { return v }

func inURL(v string) string { return strings.ReplaceAll(url.QueryEscape(v), "+", "%20") }

// expand replaces ${NAME}s by values of the environment. Any other $ is itself.
func expand(text string, env Environment, escape func(string) string) (string, error) {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(text, "${")
		b.WriteString(before)
		if !ok {
			return b.String(), nil
		}
		name, after, ok := strings.Cut(rest, "}")
		if !ok || !variableName(name) {
			return "", errors.New("holds a ${ that does not go on as a name of the environment and a }")
		}
		value, ok := env(name)
		if !ok || value == "" {
			return "", &UnsetError{name}
		}
		b.WriteString(escape(value))
		text = after
	}
}

func variableName(s string) bool {
	for i, c := range s {
		if c != '_' && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

func hasVariable(text string) bool {
	_, rest, ok := strings.Cut(text, "${")
	return ok && strings.Contains(rest, "}")
}

// onlyVariables says whether nothing but ${NAME}s, and words such as Bearer that
// stand before them, make up a text.
func onlyVariables(text string) bool {
	for _, scheme := range []string{"Bearer ", "Token ", "Basic "} {
		text = strings.TrimPrefix(text, scheme)
	}
	if text == "" {
		return false
	}
	for text != "" {
		rest, ok := strings.CutPrefix(text, "${")
		if !ok {
			return false
		}
		name, after, ok := strings.Cut(rest, "}")
		if !ok || !variableName(name) {
			return false
		}
		text = after
	}
	return true
}

// Request is what goes out to a URL: with credentials, so never to be shown.
type Request struct {
	URL                *url.URL
	Headers            map[string]proxy.Secret
	Username, Password proxy.Secret
}

// Request fills in what the environment holds. Its error names the setting, and
// never holds a value.
func (s *Source) Request(env Environment) (*Request, error) {
	text, err := expand(s.URL, env, inURL)
	if err != nil {
		return nil, &FieldError{"url", err.Error()}
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, fault("url", "is not a URL once the environment is filled in")
	}
	r := &Request{URL: u, Headers: map[string]proxy.Secret{}}
	query := []string{u.RawQuery}
	for _, name := range slices.Sorted(maps.Keys(s.Query)) {
		value, err := expand(s.Query[name], env, asIs)
		if err != nil {
			return nil, &FieldError{"query." + name, err.Error()}
		}
		query = append(query, url.QueryEscape(name)+"="+url.QueryEscape(value))
	}
	u.RawQuery = strings.TrimPrefix(strings.Join(query, "&"), "&")
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		value, err := expand(s.Headers[name], env, asIs)
		switch {
		case err != nil:
			return nil, &FieldError{"headers." + name, err.Error()}
		case strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }):
			return nil, fault("headers."+name, "holds control characters once the environment is filled in")
		}
		r.Headers[name] = proxy.Secret(value)
	}
	for path, p := range map[string]struct {
		from string
		to   *proxy.Secret
	}{"basic.username": {s.Username, &r.Username}, "basic.password": {s.Password, &r.Password}} {
		value, err := expand(p.from, env, asIs)
		if err != nil {
			return nil, &FieldError{path, err.Error()}
		}
		*p.to = proxy.Secret(value)
	}
	return r, nil
}

// Ready says whether the environment has all that the source needs.
func (s *Source) Ready(env Environment) error {
	switch s.Kind {
	case KindPreset:
		_, err := s.Templates(env)
		return err
	case KindURL, KindJSON:
		_, err := s.Request(env)
		return err
	case KindFile:
	}
	return nil
}
