package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hostler-proxy/hostler/internal/proxy"
)

// Mapping says how a JSON API's answer becomes proxies. A path is names and
// places in lists with dots between: data.items, ports.0; "" is the whole.
type Mapping struct {
	Records string
	Fields  map[string]string // our field -> a path, or = and a constant

	// PageParam counts pages up from FirstPage (nil = 1) until one has no records.
	PageParam string
	FirstPage *int
	// CursorPath leads to what CursorParam carries to the next page.
	CursorPath, CursorParam string
	// NextPath leads to the next page's URL.
	NextPath string
	MaxPages int
}

// fields are what a record can say. line is a whole proxy, in any form that a
// list may have.
func fields() []string {
	return []string{"line", "host", "port", "scheme", "username", "password", "region", "group", "cap", "expires_at"}
}

func setMapped(s *Source, name, value string) error {
	label, isLabel := strings.CutPrefix(name, "labels.")
	if !slices.Contains(fields(), name) && (!isLabel || label == "") {
		return errors.New("is no field of a proxy; known are: " + strings.Join(fields(), ", ") + ", labels.NAME")
	}
	s.Mapping.Fields[name] = value
	if strings.HasPrefix(value, "=") {
		return nil
	}
	return checkPath(value)
}

func path(at func(*Source) *string) func(*Source, string, string) error {
	return func(s *Source, _, v string) error { *at(s) = v; return checkPath(v) }
}

func checkPath(v string) error {
	if v == "" {
		return errors.New("is empty")
	}
	for name := range strings.SplitSeq(v, ".") {
		if name == "" {
			return fmt.Errorf("%q is not a path such as data.items or ports.0", v)
		}
	}
	return nil
}

func (m *Mapping) check() error {
	ways := 0
	for _, way := range []string{m.PageParam, m.CursorPath, m.NextPath} {
		if way != "" {
			ways++
		}
	}
	switch {
	case m.Fields["line"] == "" && m.Fields["host"] == "":
		return fault("json.fields", "name the path of host (and port), or of line, a whole proxy in one text")
	case m.Fields["line"] != "" && m.Fields["host"] != "":
		return fault("json.fields.line", "is a whole proxy: leave host out")
	case m.Fields["host"] != "" && m.Fields["port"] == "":
		return fault("json.fields.port", "is missing: name its path, or = and a number")
	case ways > 1:
		return fault("json.paging", "page, cursor and next are three ways: take one")
	case m.CursorParam != "" && m.CursorPath == "":
		return fault("json.paging.cursor_param", "means nothing without json.paging.cursor")
	case m.FirstPage != nil && m.PageParam == "":
		return fault("json.paging.first", "means nothing without json.paging.page")
	}
	return nil
}

// Paged says whether there can be more than one page.
func (m *Mapping) Paged() bool { return m.PageParam != "" || m.CursorPath != "" || m.NextPath != "" }

// First is the number of the first page.
func (m *Mapping) First() int {
	if m.FirstPage == nil {
		return 1
	}
	return *m.FirstPage
}

// CursorName is the parameter that carries the cursor.
func (m *Mapping) CursorName() string {
	if m.CursorParam == "" {
		return "cursor"
	}
	return m.CursorParam
}

// Page is what one answer holds.
type Page struct {
	Entries  []proxy.Entry // Line is the record's number, from 1
	Rejected []proxy.Rejection
	Records  int
	Cursor   string // "" = it is the last
	Next     string // likewise
}

// Read makes proxies of one answer. first is the number of records before it. Its
// error says why the answer is none.
func (m *Mapping) Read(body []byte, first int, opts proxy.ListOptions) (*Page, error) {
	d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))))
	d.UseNumber()
	var root any
	if err := d.Decode(&root); err != nil {
		return nil, errors.New("the answer is not JSON, or it was cut off")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more behind the JSON of the answer")
	}
	list, ok := at(root, m.Records).([]any)
	if !ok {
		return nil, fmt.Errorf("the answer has no list at json.records %q", m.Records)
	}
	p := &Page{Records: len(list)}
	for i, record := range list {
		e := proxy.Entry{Line: first + i + 1}
		if err := m.entry(record, &e, opts); err != nil {
			p.Rejected = append(p.Rejected, proxy.Rejection{Line: e.Line, Reason: err.Error()})
			continue
		}
		p.Entries = append(p.Entries, e)
	}
	p.Cursor, p.Next = scalar(at(root, m.CursorPath), m.CursorPath), scalar(at(root, m.NextPath), m.NextPath)
	return p, nil
}

// scalar gives a text or number that a path leads to.
func scalar(v any, path string) string {
	if path == "" {
		return ""
	}
	text, _ := textOf(v)
	return text
}

// at follows a path; nil where it leads nowhere.
func at(v any, path string) any {
	if path == "" {
		return v
	}
	for name := range strings.SplitSeq(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[name]
		case []any:
			n, err := strconv.Atoi(name)
			if err != nil || n < 0 || n >= len(in) {
				return nil
			}
			v = in[n]
		default:
			return nil
		}
	}
	return v
}

// textOf gives a value's text; ok is false for lists and objects.
func textOf(v any) (string, bool) {
	switch v := v.(type) {
	case nil:
		return "", true
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	default:
		return "", false
	}
}

// maxSeconds bounds expiry times: the year 9999.
const maxSeconds = 253_402_300_799

// entry makes a proxy of one record. Its error never quotes a value.
func (m *Mapping) entry(record any, e *proxy.Entry, opts proxy.ListOptions) error {
	say := map[string]string{}
	for field, from := range m.Fields {
		if constant, ok := strings.CutPrefix(from, "="); ok {
			say[field] = constant
			continue
		}
		value, ok := textOf(at(record, from))
		if !ok {
			return fmt.Errorf("%s is a list or an object at %s", field, from)
		}
		say[field] = value
	}
	if err := address(say, &e.Proxy, opts.Scheme); err != nil {
		return err
	}
	if name := e.Proxy.Special(); name != "" && !opts.AllowSpecial {
		return fmt.Errorf("special-purpose address (%s): set allow_special if the proxies are your own", name)
	}
	return details(say, e)
}

func address(say map[string]string, p *proxy.Proxy, scheme proxy.Scheme) (err error) {
	if scheme == "" {
		scheme = proxy.SchemeHTTP
	}
	if say["scheme"] != "" {
		if scheme, err = proxy.ParseScheme(say["scheme"]); err != nil {
			return err
		}
	}
	if line := strings.TrimSpace(say["line"]); line != "" {
		if *p, err = proxy.Parse(line, scheme); err != nil {
			return err
		}
	} else {
		port, err := strconv.ParseUint(say["port"], 10, 16)
		if err != nil {
			return errors.New("the port is missing or not a number")
		}
		*p = proxy.Proxy{Scheme: scheme, Host: strings.TrimSpace(say["host"]), Port: uint16(port)}
	}
	if say["username"] != "" {
		p.Username = say["username"]
	}
	if say["password"] != "" {
		p.Password = proxy.Secret(say["password"])
	}
	return p.Validate()
}

func details(say map[string]string, e *proxy.Entry) error {
	e.Region, e.Group = say["region"], say["group"]
	for _, v := range []string{e.Region, e.Group} {
		if v != "" && (len(v) > 200 || checkText(v) != nil) {
			return errors.New("region or group is longer than 200 bytes or holds control characters")
		}
	}
	for field, value := range say {
		name, ok := strings.CutPrefix(field, "labels.")
		if !ok || value == "" {
			continue
		}
		if err := checkLabel(name, value); err != nil {
			return fmt.Errorf("label %s: %w", name, err)
		}
		if e.Labels == nil {
			e.Labels = map[string]string{}
		}
		e.Labels[name] = value
	}
	if text := say["cap"]; text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > 10_000 {
			return errors.New("cap is not a number within 0 and 10000")
		}
		e.Cap = n
	}
	if text := say["expires_at"]; text != "" {
		at, err := expiry(text)
		if err != nil {
			return err
		}
		e.ExpiresAt = at
	}
	return nil
}

// expiry reads seconds since 1970, or RFC 3339.
func expiry(text string) (time.Time, error) {
	if n, err := strconv.ParseFloat(text, 64); err == nil && n > 0 && n <= maxSeconds {
		return time.Unix(int64(n), 0).UTC(), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.Unix() <= 0 || at.Unix() > maxSeconds {
		return time.Time{}, errors.New("expires_at is neither seconds since 1970 nor a time such as 2026-01-31T12:00:00Z")
	}
	return at, nil
}
