package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hostler-proxy/hostler/internal/config"
)

const goodSources = `
sources:
  acme:
    url: https://lists.acme.example/proxies.txt?protocol=http
    interval: 15m
    headers: {Authorization: "Bearer ${ACME_TOKEN}"}
    labels: {tier: gold, "a.b": "true"}
    cap: 3
    allow_special: false
  shop:
    json:
      url: https://api.shop.example/v2/list
      records: data.items
      fields: {host: ip, port: ports.0, scheme: "=socks5", labels: {plan: plan.name}}
      paging: {page: page, max_pages: 20}
    basic: {username: "${SHOP_USER}", password: "${SHOP_PASSWORD}"}
  own: {file: /etc/hostler/own.txt, pool: own}
  res:
    preset: oxylabs
    params: {username: "${OXY_USER}", password: "${OXY_PASSWORD}", country: [us, de], sticky: 30m}
`

func TestSources(t *testing.T) {
	file, err := config.Parse([]byte(goodSources))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]config.Settings{
		"acme": {
			"url": "https://lists.acme.example/proxies.txt?protocol=http", "interval": "15m", "headers.Authorization": "Bearer ${ACME_TOKEN}",
			"labels.tier": "gold", "labels.a.b": "true", "cap": "3", "allow_special": "false",
		},
		"shop": {
			"json.url": "https://api.shop.example/v2/list", "json.records": "data.items", "json.fields.host": "ip", "json.fields.port": "ports.0",
			"json.fields.scheme": "=socks5", "json.fields.labels.plan": "plan.name", "json.paging.page": "page", "json.paging.max_pages": "20",
			"basic.username": "${SHOP_USER}", "basic.password": "${SHOP_PASSWORD}",
		},
		"own": {"file": "/etc/hostler/own.txt", "pool": "own"},
		"res": {
			"preset": "oxylabs", "params.username": "${OXY_USER}", "params.password": "${OXY_PASSWORD}", "params.country": "us, de", "params.sticky": "30m",
		},
	}
	if diff := cmp.Diff(want, file.Sources); diff != "" {
		t.Error(diff)
	}
	text := config.FormatSources(file.Sources)
	back, err := config.Parse([]byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if diff := cmp.Diff(want, back.Sources); diff != "" {
		t.Errorf("what is printed reads otherwise: %s\n%s", diff, text)
	}
}

func TestNoSectionIsNotAnEmptyOne(t *testing.T) {
	for text, section := range map[string]bool{"pools: {}": false, "": false, "sources:": true, "sources: {}": true} {
		file, err := config.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if (file.Sources != nil) != section {
			t.Errorf("%q: %v", text, file.Sources)
		}
	}
}

func TestSourceFaultsNameTheirLine(t *testing.T) {
	for text, want := range map[string]string{
		"sources:\n  a:\n    urll: x":                                             "line 3: sources.a.urll: unknown setting of a source",
		"sources:\n  a:\n    url: ftp://x":                                        "line 3: sources.a.url: must begin with http",
		"sources:\n  a:\n    url: [a, b]":                                         "line 3: sources.a.url: must be a single value",
		"sources:\n  a:\n    url: {x: y}":                                         "line 3: sources.a.url: is not a section",
		"sources:\n  a:\n    file: x\n    interval: 5":                            "line 4: sources.a.interval: \"5\" is not a duration",
		"sources:\n  a:\n    file: x\n    url: http://b.example":                  "sources.a.file: name exactly one of file, url",
		"sources:\n  a:\n    file: x\n    headers: {A: b}":                        "sources.a.headers.A: means nothing for a source of the kind file",
		"sources:\n  a b:\n    file: x":                                           "sources.a b: a source's name has",
		"sources:\n  hand:\n    file: x":                                          "hand stands for what an operator brings in",
		"sources: [a]":                                                            "must be a mapping",
		"sources:\n  a: x":                                                        "line 2: sources.a: must be a mapping",
		"sources:\n  a:\n    file: null":                                          "sources.a.file: must be a single value",
		"sources:\n  a:\n    file: x\n    file: y":                                "",
		"sources:\n  a: {}":                                                       "sources.a.file: name exactly one",
		"sources:\n  a:\n    url: http://b.example/\n    headers: {X-Token: abc}": "line 4: sources.a.headers.X-Token: looks like a credential",
		"sources:\n  a:\n    json: {url: http://b.example/}":                      "sources.a.json.fields: name the path",
	} {
		_, err := config.Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}
