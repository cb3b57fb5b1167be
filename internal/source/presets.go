package source

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/proxy"
)

// preset is how one provider writes its parameters into username or password.
// The parts are texts in which {NAME} stands for a parameter; a part whose
// parameter is not given is left out. {session} stays: each session of a lease
// fills it in.
type preset struct {
	name string
	host string
	port int
	// parts make the username, and after a username of its own the password.
	username, password []string
	// required are the parameters that must be given, optional those that may.
	required, optional []string
	session            bool          // sessions are possible
	sticky             time.Duration // longest life of a session; 0 = not a parameter
	upper              bool          // countries are written in capitals
}

// presets lists the providers, each with where its form is described.
func presets() []preset {
	return []preset{
		{ // docs.brightdata.com: configuration options of native access
			name: "brightdata", host: "brd.superproxy.io", port: 33335, session: true,
			username: []string{"brd-customer-{username}-zone-{zone}", "-country-{country}", "-state-{state}", "-city-{city}", "-session-{session}"},
			password: []string{"{password}"}, required: []string{"zone"}, optional: []string{"state", "city"},
		},
		{ // developers.oxylabs.io: making requests, session control
			name: "oxylabs", host: "pr.oxylabs.io", port: 7777, session: true, sticky: 1440 * time.Minute, upper: true,
			username: []string{"customer-{username}", "-cc-{country}", "-st-{state}", "-city-{city}", "-sessid-{session}", "-sesstime-{minutes}"},
			password: []string{"{password}"}, optional: []string{"state", "city"},
		},
		{ // help.decodo.com: custom sticky sessions
			name: "decodo", host: "gate.decodo.com", port: 7000, session: true, sticky: 1440 * time.Minute,
			username: []string{"user-{username}", "-country-{country}", "-city-{city}", "-session-{session}", "-sessionduration-{minutes}"},
			password: []string{"{password}"}, optional: []string{"city"},
		},
		{ // users' reports of the form; the parameters stand in the password
			name: "iproyal", host: "geo.iproyal.com", port: 12321, session: true, sticky: 1440 * time.Minute,
			username: []string{"{username}"},
			password: []string{"{password}", "_country-{country}", "_city-{city}", "_session-{session}", "_lifetime-{minutes}m"},
			optional: []string{"city"},
		},
		{ // users' code; it disagrees on the unit of sessionlength, so that is given as it is
			name: "soax", host: "proxy.soax.com", port: 5000, session: true,
			username: []string{"package-{username}", "-country-{country}", "-region-{state}", "-city-{city}", "-isp-{isp}", "-sessionid-{session}", "-sessionlength-{sessionlength}"},
			password: []string{"{password}"}, optional: []string{"state", "city", "isp", "sessionlength"},
		},
		{ // help.netnut.io: curl parameters; session ids are numbers there, which ours are not
			name: "netnut", port: 5959, username: []string{"{username}-res", "-{country}"}, password: []string{"{password}"}, required: []string{"host"},
		},
		{ // apidocs.webshare.io: proxy connection; session ids are numbers there, so every request rotates
			name: "webshare", host: "p.webshare.io", port: 80, username: []string{"{username}", "-{country}", "-rotate"}, password: []string{"{password}"},
		},
		{ // docs.apify.com: proxy usage
			name: "apify", host: "proxy.apify.com", port: 8000, session: true, upper: true,
			username: []string{"groups-{username}", ",session-{session}", ",country-{country}"}, password: []string{"{password}"},
		},
		{ // docs.zyte.com: the key is the user, the password stays empty; options go into headers
			name: "zyte", host: "proxy.zyte.com", port: 8011, username: []string{"{username}"},
		},
	}
}

// PresetNames lists the presets.
func PresetNames() []string {
	var names []string
	for _, p := range presets() {
		names = append(names, p.name)
	}
	return names
}

func findPreset(name string) *preset {
	for _, p := range presets() {
		if p.name == name {
			return &p
		}
	}
	return nil
}

func checkPreset(name string) error {
	if findPreset(name) == nil {
		return fmt.Errorf("%q is not one of %s", name, strings.Join(PresetNames(), ", "))
	}
	return nil
}

// common are parameters that every preset may have.
func common() []string {
	return []string{"host", "port", "username", "password", "country", "session", "sticky"}
}

func checkParam(name, value string) error {
	known := common()
	for _, p := range presets() {
		known = append(append(known, p.required...), p.optional...)
	}
	if !slices.Contains(known, name) {
		slices.Sort(known)
		return fmt.Errorf("is no parameter of any preset; known are: %s", strings.Join(slices.Compact(known), ", "))
	}
	return checkCredential(name, value)
}

// Templates gives the provider's gateway, once for each country, with the
// parameters filled in.
func (s *Source) Templates(env Environment) ([]proxy.Entry, error) {
	p := findPreset(s.Preset)
	if p == nil {
		return nil, fault("preset", "%q is not known", s.Preset)
	}
	if err := p.check(s.Params); err != nil {
		return nil, err
	}
	values := map[string]string{}
	for name, text := range s.Params {
		value, err := expand(text, env, asIs)
		if err != nil {
			return nil, &FieldError{"params." + name, err.Error()}
		}
		values[name] = value
	}
	if p.session && values["session"] != "false" {
		values["session"] = "{session}"
	} else {
		delete(values, "session")
	}
	if values["sticky"] != "" {
		d, _ := time.ParseDuration(values["sticky"]) // checked before
		values["minutes"] = strconv.Itoa(int(d / time.Minute))
	}
	var list []proxy.Entry
	for _, country := range s.countries(values["country"]) {
		e, err := p.entry(values, country, s.Scheme)
		if err != nil {
			return nil, err
		}
		e.Line = len(list) + 1
		list = append(list, e)
	}
	return list, nil
}

// byRegion is the country that is filled in from the proxy's region.
const byRegion = "{country}"

// countries gives those that are asked for; the proxy's region, if it has one; or
// "" for any.
func (s *Source) countries(text string) []string {
	if text == "" && s.Region != "" {
		return []string{byRegion}
	}
	list := strings.Split(text, ",")
	for i := range list {
		list[i] = strings.ToLower(strings.TrimSpace(list[i]))
	}
	return list
}

// check wants the parameters that this provider takes, and no others.
func (p *preset) check(params map[string]string) error {
	known := slices.Concat(common(), p.required, p.optional)
	for _, name := range slices.Sorted(maps.Keys(params)) {
		if !slices.Contains(known, name) {
			return fault("params."+name, "%s has no such parameter; it takes: %s", p.name, strings.Join(known, ", "))
		}
	}
	required := append([]string{"username"}, p.required...)
	if p.password != nil {
		required = append(required, "password")
	}
	for _, name := range required {
		if params[name] == "" {
			return fault("params."+name, "%s needs it", p.name)
		}
	}
	if params["password"] != "" && p.password == nil {
		return fault("params.password", "%s has none: the key is the username", p.name)
	}
	if params["country"] != "" && !slices.ContainsFunc(slices.Concat(p.username, p.password), func(part string) bool { return strings.Contains(part, byRegion) }) {
		return fault("params.country", "%s takes no country in username or password", p.name)
	}
	if err := p.checkSession(params); err != nil {
		return err
	}
	if text := params["port"]; text != "" {
		if n, err := strconv.Atoi(text); err != nil || n < 1 || n > 65535 {
			return fault("params.port", "%q is not a port", text)
		}
	}
	return nil
}

func (p *preset) checkSession(params map[string]string) error {
	if text := params["session"]; text != "" && text != "true" && text != "false" {
		return fault("params.session", "must be true (each session keeps its exit) or false (each request has another)")
	}
	if params["session"] == "true" && !p.session {
		return fault("params.session", "%s knows sessions by numbers only, which is not supported: each request has another exit", p.name)
	}
	text := params["sticky"]
	switch d, err := time.ParseDuration(text); {
	case text == "":
		return nil
	case p.sticky == 0:
		return fault("params.sticky", "%s takes no such parameter in a common unit", p.name)
	case params["session"] == "false":
		return fault("params.sticky", "means nothing without sessions")
	case err != nil || d < time.Minute || d > p.sticky || d%time.Minute != 0:
		return fault("params.sticky", "%q is not a number of whole minutes within 1m and %s", text, p.sticky)
	}
	return nil
}

// entry makes the proxy for one country.
func (p *preset) entry(values map[string]string, country string, scheme proxy.Scheme) (proxy.Entry, error) {
	e := proxy.Entry{}
	values = maps.Clone(values)
	switch {
	case country == byRegion:
		values["country"] = byRegion
	case country == "":
		delete(values, "country")
	case len(country) != 2 || strings.Trim(country, "abcdefghijklmnopqrstuvwxyz") != "":
		return e, fault("params.country", "%q is not a country of two letters, or {country} for the proxy's region", country)
	default:
		e.Region, values["country"] = country, country
		if p.upper {
			values["country"] = strings.ToUpper(country)
		}
	}
	host, port := p.host, p.port
	if values["host"] != "" {
		host = values["host"]
	}
	if values["port"] != "" {
		port, _ = strconv.Atoi(values["port"]) // checked before
	}
	if scheme == "" {
		scheme = proxy.SchemeHTTP
	}
	e.Proxy = proxy.Proxy{
		Scheme: scheme, Host: host, Port: uint16(port), Username: fill(p.username, values), Password: proxy.Secret(fill(p.password, values)),
	}
	if err := e.Proxy.Validate(); err != nil {
		return e, fault("params", "%s", err.Error())
	}
	return e, nil
}

// fill joins the parts whose parameters are all there.
func fill(parts []string, values map[string]string) string {
	var b strings.Builder
	for _, part := range parts {
		if text, ok := fillPart(part, values); ok {
			b.WriteString(text)
		}
	}
	return b.String()
}

func fillPart(part string, values map[string]string) (text string, ok bool) {
	for {
		before, rest, more := strings.Cut(part, "{")
		text += before
		if !more {
			return text, true
		}
		name, after, _ := strings.Cut(rest, "}")
		if values[name] == "" {
			return "", false
		}
		text += values[name]
		part = after
	}
}

// ExitOf is the exit kind of a template's entry: without sessions the gateway
// itself changes its exits.
func ExitOf(p proxy.Proxy) pool.Exit {
	if p.IsTemplate() {
		return pool.ExitTemplate
	}
	return pool.ExitRotating
}
