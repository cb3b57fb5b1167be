package source

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/proxy"
)

// Field is one setting of a source. One table serves the file, its check and the
// documentation.
type Field struct {
	// Path is the setting's name in the file, dots between the levels; NAME at
	// its end stands for any name.
	Path string
	// Default is what holds when the file says nothing, for people.
	Default string
	// Doc is its meaning, unit and range.
	Doc string

	set func(s *Source, name, value string) error
}

// Fields lists all settings of a source, in the order of the documentation.
func Fields() []Field {
	return slices.Concat(originFields(), requestFields(), proxyFields())
}

func originFields() []Field {
	return []Field{
		{"pool", "`default`", "Pool that the proxies go into.", func(s *Source, _, v string) error { s.Pool = v; return checkPool(v) }},
		{"file", "", "A list on the daemon's machine; read anew when it changes.", text(func(s *Source) *string { return &s.File })},
		{"url", "", "A list behind http or https.", func(s *Source, _, v string) error { s.URL = v; return checkURL(v) }},
		{"json.url", "", "An API that answers JSON.", func(s *Source, _, v string) error { s.URL = v; return checkURL(v) }},
		{"json.records", "the whole answer", "Path to the list of records, dots between the levels.", path(func(s *Source) *string { return &s.Mapping.Records })},
		{"json.fields.NAME", "", "Path to a field inside a record, or `=` and a constant; see docs/sources.md.", setMapped},
		{"json.paging.page", "", "Query parameter that counts pages up.", word(func(s *Source) *string { return &s.Mapping.PageParam })},
		{"json.paging.first", "`1`", "Number of the first page. 0 to 1000000.", number(0, 1_000_000, func(s *Source, n int64) { s.Mapping.FirstPage = new(int(n)) })},
		{"json.paging.cursor", "", "Path to the next page's cursor.", path(func(s *Source) *string { return &s.Mapping.CursorPath })},
		{"json.paging.cursor_param", "`cursor`", "Query parameter that carries the cursor.", word(func(s *Source) *string { return &s.Mapping.CursorParam })},
		{"json.paging.next", "", "Path to the next page's URL, on the same host.", path(func(s *Source) *string { return &s.Mapping.NextPath })},
		{"json.paging.max_pages", "`100`", "More pages than this are a fault. 1 to 10000.", number(1, 10_000, func(s *Source, n int64) { s.Mapping.MaxPages = int(n) })},
		{"preset", "", "A provider whose gateway is made from parameters: " + strings.Join(PresetNames(), ", ") + ".", func(s *Source, _, v string) error { s.Preset = v; return checkPreset(v) }},
		{"params.NAME", "", "A parameter of the preset; see docs/sources.md.", func(s *Source, name, v string) error { s.Params[name] = v; return checkParam(name, v) }},
		{"format", "`auto`", "Form of the list: auto, or one of those in docs/lists.md.", func(s *Source, _, v string) (err error) {
			s.Format, err = proxy.ParseFormat(v)
			return err
		}},
	}
}

func requestFields() []Field {
	return []Field{
		{"interval", "`1h`", "Time between two fetches, up to a tenth more. 1s to 720h.", duration(time.Second, 720*time.Hour, func(s *Source) *time.Duration { return &s.Interval })},
		{"timeout", "`30s`", "Time for a whole fetch, all pages and redirects together. 100ms to 10m.", duration(100*time.Millisecond, 10*time.Minute, func(s *Source) *time.Duration { return &s.Timeout })},
		{"max_bytes", "`67108864`", "Most bytes of an answer or file, unpacked, all pages together. 1024 to 1073741824.", number(1024, 1<<30, func(s *Source, n int64) { s.MaxBytes = n })},
		{"headers.NAME", "", "A header to send; credentials as `${NAME}`.", func(s *Source, name, v string) error { s.Headers[name] = v; return checkHeader(name, v) }},
		{"query.NAME", "", "A query parameter to send; credentials as `${NAME}`.", func(s *Source, name, v string) error { s.Query[name] = v; return checkCredential(name, v) }},
		{"basic.username", "", "User of HTTP basic authentication.", func(s *Source, _, v string) error { s.Username = v; return checkCredential("", v) }},
		{"basic.password", "", "Its password, as `${NAME}`.", func(s *Source, _, v string) error { s.Password = v; return checkCredential("password", v) }},
	}
}

func proxyFields() []Field {
	return []Field{
		{"scheme", "`http`", "Scheme of proxies that name none.", func(s *Source, _, v string) (err error) { s.Scheme, err = proxy.ParseScheme(v); return err }},
		{"exit", "found by itself", "static, rotating or template.", func(s *Source, _, v string) error { _, err := pool.ParseExit(v); s.Exit = v; return err }},
		{"region", "", "Region of proxies that name none.", text(func(s *Source) *string { return &s.Region })},
		{"group", "", "Group (account) of proxies that name none.", text(func(s *Source) *string { return &s.Group })},
		{"labels.NAME", "", "A label of all proxies that bring no labels.", func(s *Source, name, v string) error { s.Labels[name] = v; return checkLabel(name, v) }},
		{"cap", "the policy's", "Most live leases of each proxy that names no cap. 0 to 10000.", number(0, 10_000, func(s *Source, n int64) { s.Cap = int(n) })},
		{"ttl", "never", "They expire that long after they were last listed. 1s to 87600h.", duration(time.Second, 87600*time.Hour, func(s *Source) *time.Duration { return &s.TTL })},
		{"allow_special", "`false`", "Take proxies at private and other special-purpose addresses, and let the URL's own host be at one.", func(s *Source, _, v string) (err error) {
			if s.AllowSpecial, err = strconv.ParseBool(v); err != nil {
				return fmt.Errorf("%q is neither true nor false", v)
			}
			return nil
		}},
	}
}

// Check says whether a setting exists and a value fits it.
func Check(path, value string) error {
	s := &Source{
		Params: map[string]string{}, Headers: map[string]string{}, Query: map[string]string{}, Labels: map[string]string{},
		Mapping: Mapping{Fields: map[string]string{}},
	}
	return set(s, path, value)
}

// Known says whether any setting begins with a prefix.
func Known(prefix string) bool {
	return slices.ContainsFunc(Fields(), func(f Field) bool {
		return strings.HasPrefix(f.Path, prefix) || strings.HasPrefix(prefix, strings.TrimSuffix(f.Path, "NAME")) && strings.HasSuffix(f.Path, "NAME")
	})
}

// Levels takes a setting's path apart: a name at its end may hold dots.
func Levels(path string) []string {
	for _, f := range Fields() {
		prefix, ok := strings.CutSuffix(f.Path, "NAME")
		if name, found := strings.CutPrefix(path, prefix); ok && found {
			if label, is := strings.CutPrefix(name, "labels."); is && f.Path == "json.fields.NAME" {
				return append(strings.Split(strings.TrimSuffix(prefix, "."), "."), "labels", label)
			}
			return append(strings.Split(strings.TrimSuffix(prefix, "."), "."), name)
		}
	}
	return strings.Split(path, ".")
}

// errUnknown is that there is no such setting.
var errUnknown = errors.New("unknown setting of a source; docs/configuration.md lists them")

func set(s *Source, path, value string) error {
	if !utf8.ValidString(value) || len(value) > 4096 {
		return errors.New("is not UTF-8 or longer than 4096 bytes")
	}
	for _, f := range Fields() {
		if f.Path == path {
			return f.set(s, "", value)
		}
		if prefix, ok := strings.CutSuffix(f.Path, "NAME"); ok && strings.HasPrefix(path, prefix) && len(path) > len(prefix) {
			return f.set(s, path[len(prefix):], value)
		}
	}
	return errUnknown
}

func text(at func(*Source) *string) func(*Source, string, string) error {
	return func(s *Source, _, v string) error { *at(s) = v; return checkText(v) }
}

func checkText(v string) error {
	if v == "" || len(v) > 1000 || strings.ContainsFunc(v, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return errors.New("must be 1 to 1000 bytes without control characters")
	}
	return nil
}

func word(at func(*Source) *string) func(*Source, string, string) error {
	return func(s *Source, _, v string) error {
		*at(s) = v
		if v == "" || strings.Trim(v, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.[]$") != "" {
			return fmt.Errorf("%q cannot be the name of a query parameter", v)
		}
		return nil
	}
}

func duration(low, high time.Duration, at func(*Source) *time.Duration) func(*Source, string, string) error {
	return func(s *Source, _, v string) error {
		d, err := time.ParseDuration(v)
		switch {
		case err != nil:
			return fmt.Errorf("%q is not a duration such as 30s or 5m", v)
		case d < low || d > high:
			return fmt.Errorf("%s is not within %s and %s", v, low, high)
		}
		*at(s) = d.Truncate(time.Millisecond)
		return nil
	}
}

func number(low, high int64, put func(*Source, int64)) func(*Source, string, string) error {
	return func(s *Source, _, v string) error {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < low || n > high {
			return fmt.Errorf("%q is not a whole number within %d and %d", v, low, high)
		}
		put(s, n)
		return nil
	}
}

func checkPool(name string) error {
	if name == "" || len(name) > 64 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != "" {
		return errors.New("a pool's name has 1 to 64 of letters, digits, dots, - and _")
	}
	return nil
}

func checkLabel(name, value string) error {
	for _, s := range []string{name, value} {
		if s == "" || len(s) > 100 || strings.ContainsAny(s, "=,") || strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f }) {
			return errors.New("a label's name and value have 1 to 100 bytes, without = and commas")
		}
	}
	return nil
}

func checkHeader(name, value string) error {
	for _, c := range []byte(name) {
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return errors.New("is not the name of a header")
		}
	}
	for _, ours := range []string{"host", "connection", "accept-encoding", "content-length", "transfer-encoding", "if-none-match", "if-modified-since"} {
		if strings.EqualFold(name, ours) {
			return errors.New("is set by the daemon itself")
		}
	}
	if strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
		return errors.New("holds control characters")
	}
	return checkCredential(name, value)
}

// checkCredential refuses what looks like a credential and stands in the file itself.
func checkCredential(name, value string) error {
	if _, err := expand(value, placeholder, asIs); err != nil {
		return err
	}
	if secretName(name) && !hasVariable(value) {
		return errors.New("looks like a credential: write ${NAME} for its value and put it into the environment")
	}
	return nil
}

// CheckName says whether a source can have a name: it stands in URLs and among
// the sources of a proxy.
func CheckName(name string) error {
	if name == "" || len(name) > 64 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != "" || name == "." || name == ".." {
		return errors.New("a source's name has 1 to 64 of letters, digits, dots, - and _")
	}
	if name == pool.ByHand {
		return fmt.Errorf("%s stands for what an operator brings in: take another name", name)
	}
	return nil
}
