package source_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/source"
)

// preset makes a source from settings written as name=value.
func preset(name string, params ...string) (*source.Source, error) {
	settings := map[string]string{"preset": name}
	for _, p := range params {
		key, value, _ := strings.Cut(p, "=")
		if !strings.Contains(key, ".") && key != "region" && key != "scheme" {
			key = "params." + key
		}
		settings[key] = value
	}
	return source.Parse("acme", settings)
}

func env(name string) (string, bool) {
	v, ok := map[string]string{"PW": "secret", "USER": "me"}[name]
	return v, ok
}

func TestPresets(t *testing.T) {
	account := []string{"username=${USER}", "password=${PW}"}
	for _, c := range []struct {
		name                        string
		params                      []string
		address, username, password string
		exit                        pool.Exit
	}{
		{"brightdata", []string{"zone=res1"}, "brd.superproxy.io:33335", "brd-customer-me-zone-res1-session-{session}", "secret", pool.ExitTemplate},
		{
			"brightdata",
			[]string{"zone=res1", "country=US", "state=ny", "city=x", "session=false", "port=22225"},
			"brd.superproxy.io:22225",
			"brd-customer-me-zone-res1-country-us-state-ny-city-x", "secret", pool.ExitRotating,
		},
		{"oxylabs", []string{"country=de", "sticky=30m"}, "pr.oxylabs.io:7777", "customer-me-cc-DE-sessid-{session}-sesstime-30", "secret", pool.ExitTemplate},
		{"oxylabs", []string{"region=US"}, "pr.oxylabs.io:7777", "customer-me-cc-{country}-sessid-{session}", "secret", pool.ExitTemplate},
		{"decodo", []string{"country=us", "city=x", "sticky=10m"}, "gate.decodo.com:7000", "user-me-country-us-city-x-session-{session}-sessionduration-10", "secret", pool.ExitTemplate},
		{"iproyal", []string{"country=us", "sticky=10m"}, "geo.iproyal.com:12321", "me", "secret_country-us_session-{session}_lifetime-10m", pool.ExitTemplate},
		{"soax", []string{"country=us", "sessionlength=300"}, "proxy.soax.com:5000", "package-me-country-us-sessionid-{session}-sessionlength-300", "secret", pool.ExitTemplate},
		{"netnut", []string{"country=us", "host=gw.example"}, "gw.example:5959", "me-res-us", "secret", pool.ExitRotating},
		{"webshare", []string{"country=us"}, "p.webshare.io:80", "me-us-rotate", "secret", pool.ExitRotating},
		{"webshare", nil, "p.webshare.io:80", "me-rotate", "secret", pool.ExitRotating},
		{"apify", []string{"country=us"}, "proxy.apify.com:8000", "groups-me,session-{session},country-US", "secret", pool.ExitTemplate},
	} {
		s, err := preset(c.name, append(slices.Clone(account), c.params...)...)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		list, err := s.Templates(env)
		if err != nil || len(list) != 1 {
			t.Errorf("%s: %v %v", c.name, list, err)
			continue
		}
		p := list[0].Proxy
		if p.Address() != c.address || p.Username != c.username || p.Password.Reveal() != c.password || source.ExitOf(p) != c.exit {
			t.Errorf("%s: got %s %s %s %s", c.name, p.Address(), p.Username, p.Password.Reveal(), source.ExitOf(p))
		}
	}
	s, err := preset("zyte", "username=${PW}", "scheme=https")
	if err != nil {
		t.Fatal(err)
	}
	if list, err := s.Templates(env); err != nil || list[0].Proxy.URL().String() != "https://secret:@proxy.zyte.com:8011" {
		t.Errorf("zyte: %v %v", list, err)
	}
}

func TestEveryPresetIsTested(t *testing.T) {
	if got := source.PresetNames(); !slices.Equal(got, []string{"brightdata", "oxylabs", "decodo", "iproyal", "soax", "netnut", "webshare", "apify", "zyte"}) {
		t.Errorf("add the new one to the tests and to docs/sources.md: %v", got)
	}
}

func TestOneTemplateForEachCountry(t *testing.T) {
	s, err := preset("decodo", "username=me", "password=${PW}", "country=us, DE")
	if err != nil {
		t.Fatal(err)
	}
	list, err := s.Templates(env)
	if err != nil || len(list) != 2 {
		t.Fatalf("%v %v", list, err)
	}
	if list[0].Region != "us" || list[1].Region != "de" || list[1].Proxy.Username != "user-me-country-de-session-{session}" {
		t.Errorf("got %+v", list)
	}
}

func TestPresetFaults(t *testing.T) {
	for params, want := range map[string]string{
		"nope username=a":                                       "preset:",
		"brightdata username=a password=${PW}":                  "params.zone: brightdata needs it",
		"brightdata username=a password=plain zone=z":           "params.password: looks like a credential",
		"brightdata password=${PW} zone=z":                      "params.username: brightdata needs it",
		"oxylabs username=a password=${PW} zone=z":              "params.zone: oxylabs has no such parameter",
		"oxylabs username=a password=${PW} colour=z":            "params.colour: is no parameter of any preset",
		"oxylabs username=a password=${PW} sticky=90s":          "params.sticky",
		"oxylabs username=a password=${PW} sticky=48h":          "params.sticky",
		"oxylabs username=a password=${PW} session=maybe":       "params.session",
		"brightdata username=a password=${PW} zone=z sticky=5m": "params.sticky: brightdata takes no such",
		"webshare username=a password=${PW} session=true":       "params.session: webshare knows sessions by numbers",
		"oxylabs username=a password=${PW} country=germany":     "params.country",
		"oxylabs username=a password=${PW} port=0":              "params.port",
		"oxylabs username=a password=${PW} host=a/b":            "params:",
		"zyte username=${PW} password=${PW}":                    "params.password: zyte has none",
		"zyte username=${PW} country=us":                        "params.country: zyte takes no country",
	} {
		words := strings.Fields(params)
		_, err := preset(words[0], words[1:]...)
		if _, ok := errors.AsType[*source.FieldError](err); !ok || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", params, err, want)
		}
	}
	s, err := preset("oxylabs", "username=a", "password=${GONE}")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Ready(env); err == nil || err.Error() != "params.password: the environment of the daemon has no GONE: set it, and start the daemon again" {
		t.Errorf("an unset variable: %v", err)
	}
}
