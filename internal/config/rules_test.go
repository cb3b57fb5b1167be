package config_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/hostler-proxy/hostler/internal/config"
	"github.com/hostler-proxy/hostler/internal/rules"
)

const ruled = `
pools:
  default:
    targets:
      shop.example:
        reuse_interval: 3s
        rules:
          - name: captcha
            when: {contains: {words: [captcha, robot check]}}
          - name: page
            when:
              status: [200]
              must_contain: |
                <div id="product">
              min_bytes: 0x800
          - {name: fine, class: ok, when: {status: 403}}
      other.example: {default_rules: false}
`

func TestRulesOfAFile(t *testing.T) {
	file, err := config.Parse([]byte(ruled))
	if err != nil {
		t.Fatal(err)
	}
	settings := file.Pools["default"]
	policy, err := config.Apply(settings, nil)
	if err != nil {
		t.Fatal(err)
	}
	book, err := config.RuleBook(settings, nil)
	if err != nil {
		t.Fatal(err)
	}
	n := len(rules.Defaults())
	list := book.For("shop.example").Rules()
	if len(list) != 3+n || len(book.For("other.example").Rules()) != 0 || len(book.For("third.example").Rules()) != n {
		t.Fatalf("rules %+v", list)
	}
	want := rules.When{Status: []int{200}, MustContain: &rules.Pattern{Text: "<div id=\"product\">\n"}, MinBytes: 2048}
	if diff := cmp.Diff(want, list[1].When); diff != "" {
		t.Error(diff)
	}
	off, err := config.RuleBook(settings, config.Settings{"default_rules": "false", "targets.shop.example.rules": "[]"})
	if err != nil || len(off.For("shop.example").Rules()) != 0 || off.For("third.example") != nil {
		t.Errorf("edits do not stand over the file: %v", err)
	}
	all := config.All(&policy, settings, nil)
	again, err := config.Parse([]byte(config.Format(map[string]config.Settings{"default": all})))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all, again.Pools["default"]); diff != "" {
		t.Error(diff)
	}
}

func TestFaultsOfRulesNameTheirLine(t *testing.T) {
	head := "pools:\n  default:\n    targets:\n      a.example:\n        rules:\n"
	for text, want := range map[string]string{
		"          - name: a\n            when: {status: [99]}":                                      "line 7: targets.a.example.rules[0].when.status:",
		"          - name: a\n            when:\n              contanis: x":                          "line 8: targets.a.example.rules[0].when.contanis: is not known here; there are: contains",
		"          - name: a\n            when:\n              contains:\n                regexp: (": "line 9: targets.a.example.rules[0].when.contains: is not a regular expression",
		"          - {name: a, when: {status: 404}}\n          - {name: a, when: {status: 404}}":     "line 7: targets.a.example.rules[1].name: \"a\" stands twice",
		"          - {name: a}":                         "line 6: targets.a.example.rules[0]: has no when",
		"          - {name: a, when: {status: &x 404}}": "line 6: targets.a.example.rules[0].when.status: must be a text",
		"          name: a":                             "line 6: targets.a.example.rules: must be a list",
		"          - name: 7\n            kind: sure\n            when: {min_bytes: 1.5}": "line 8: targets.a.example.rules[0].when.min_bytes: must be a whole number",
	} {
		_, err := config.Parse([]byte(head + text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"pools:\n  default:\n    default_rules: perhaps":                         "line 3: default_rules: \"perhaps\" is neither",
		"pools:\n  default:\n    targets:\n      a.example: {default_rules: []}": "line 4: targets.a.example.default_rules",
		"pools:\n  default:\n    targets:\n      a.example: {roles: []}":         "targets have: reuse_interval, min_gap, max_concurrency, rules, default_rules",
	} {
		if _, err := config.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
	if err := config.Check("targets.a.example.rules", `[{"name":"a"}]`); err == nil || !strings.Contains(err.Error(), "[0]: has no when") {
		t.Errorf("an edit with a fault: %v", err)
	}
}

// TestAnyTextStandsInARule writes patterns of any characters into the file's form and reads them back.
func TestAnyTextStandsInARule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(1, 50, 500).Draw(t, "text")
		list := []rules.Rule{{Name: "a", Kind: rules.Decisive, Class: rules.Blocked, When: rules.When{Contains: &rules.Pattern{Text: text}}}}
		settings := config.Settings{"targets.a.example.rules": rules.Format(list)}
		written := config.Format(map[string]config.Settings{"default": settings})
		file, err := config.Parse([]byte(written))
		if err != nil {
			t.Fatalf("%v\n%s", err, written)
		}
		if diff := cmp.Diff(settings, file.Pools["default"]); diff != "" {
			t.Fatalf("%s\n%s", diff, written)
		}
	})
}

// TestGuideExamples takes in every policy that docs/rules.md shows.
func TestGuideExamples(t *testing.T) {
	text, err := os.ReadFile("../../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "```yaml\n")[1:]
	if len(blocks) == 0 {
		t.Fatal("docs/rules.md shows no policy")
	}
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		file, err := config.Parse([]byte(block))
		if err != nil {
			t.Errorf("%v\n%s", err, block)
			continue
		}
		book, err := config.RuleBook(file.Pools["default"], nil)
		if err != nil {
			t.Fatal(err)
		}
		set := book.For("shop.example")
		for _, tt := range []struct {
			page rules.Response
			want rules.Class
		}{
			{rules.Response{Status: 200, Body: []byte("a Robot Check"), Size: 13}, rules.Blocked},
			{rules.Response{Status: 404, Size: -1}, rules.Blocked},
			{rules.Response{Status: 403, Body: []byte("<p>no"), Size: 5}, rules.OK},
			{rules.Response{Status: 302, RedirectHost: "login.shop.example", Size: 0}, rules.Blocked},
			{rules.Response{Status: 302, Header: map[string][]string{"X-Throttle": {"on"}}}, rules.Rate},
			{rules.Response{Status: 200, Body: []byte(strings.Repeat("text ", 2000) + `itemprop="price"`), Size: 10_016}, rules.None},
		} {
			if got := set.Evaluate(&tt.page); got.Class != tt.want {
				t.Errorf("%+v: %+v, want %s", tt.page, got, tt.want)
			}
		}
	}
}
