package proxy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// Entry is what one line of a list says; fields that it does not say are zero.
type Entry struct {
	Line      int
	Proxy     Proxy
	Region    string
	Group     string
	Labels    map[string]string
	ExpiresAt time.Time
	Cap       int
}

// ListOptions say how a list is read.
type ListOptions struct {
	// Scheme is that of lines that name none; http if empty.
	Scheme Scheme
	// AllowSpecial takes proxies at special-purpose addresses, such as private
	// ones; public lists have no business there.
	AllowSpecial bool
}

// Rejection is a line that gave no proxy, and why. The reason never quotes
// credentials or control bytes.
type Rejection struct {
	Line   int
	Reason string
}

// maxKept bounds the rejections that are kept; all are counted.
const maxKept = 1000

// maxLine bounds a line.
const maxLine = 64 << 10

// List reads a list of proxies from a stream, line by line. A bad line never
// stops the rest.
type List struct {
	opts     ListOptions
	in       *bufio.Reader
	line     int
	rejected []Rejection
	ignored  []Rejection
	rejects  int
	err      error
	end      bool
}

// ReadList begins to read a list.
func ReadList(r io.Reader, opts ListOptions) *List {
	if opts.Scheme == "" {
		opts.Scheme = SchemeHTTP
	}
	return &List{opts: opts, in: bufio.NewReaderSize(r, maxLine)}
}

// Next gives the next proxy; ok is false at the end of the list.
func (l *List) Next() (e Entry, ok bool) {
	for !l.end {
		text, err := l.readLine()
		if err != nil {
			l.reject(err.Error())
			continue
		}
		if text = stripComment(text); text == "" {
			continue
		}
		if strings.HasPrefix(text, "{") {
			text = l.wholeRecord(text)
		}
		e, err := l.parse(text)
		if err != nil {
			l.reject(err.Error())
			continue
		}
		return e, true
	}
	return Entry{}, false
}

// Rejected lists the lines that gave no proxy, the first thousand of them.
func (l *List) Rejected() []Rejection { return l.rejected }

// RejectedCount counts all of them.
func (l *List) RejectedCount() int { return l.rejects }

// Ignored lists what was understood and left aside, such as unknown keys.
func (l *List) Ignored() []Rejection { return l.ignored }

// Err is the error of reading the stream, if there was one.
func (l *List) Err() error { return l.err }

func (l *List) reject(reason string) {
	if l.rejects++; len(l.rejected) < maxKept {
		l.rejected = append(l.rejected, Rejection{l.line, clean(reason)})
	}
}

var errLong = errors.New("the line is longer than 64 KiB")

// readLine gives the next line without its end, BOM and stray CR.
func (l *List) readLine() (string, error) {
	l.line++
	raw, err := l.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = l.in.ReadSlice('\n')
		}
		l.finish(err)
		return "", errLong
	}
	l.finish(err)
	if l.line == 1 {
		raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
		if bytes.HasPrefix(raw, []byte("\xff\xfe")) || bytes.HasPrefix(raw, []byte("\xfe\xff")) {
			l.end = true
			return "", errors.New("the list is in UTF-16: save it as UTF-8")
		}
	}
	if !utf8.Valid(raw) {
		return "", errors.New("the line is not UTF-8")
	}
	return string(bytes.TrimSpace(raw)), nil
}

func (l *List) finish(err error) {
	if err != nil {
		l.end = true
		if !errors.Is(err, io.EOF) {
			l.err = err
		}
	}
}

// wholeRecord adds the lines that a JSON object goes on in.
func (l *List) wholeRecord(text string) string {
	for !l.end && len(text) < maxLine && !json.Valid([]byte(strings.TrimSuffix(text, ","))) && open(text) {
		more, err := l.readLine()
		if err != nil {
			return text
		}
		text += "\n" + more
	}
	return text
}

// open says whether a text has more opening braces than closing ones.
func open(text string) bool { return strings.Count(text, "{") > strings.Count(text, "}") }

// stripComment cuts a comment: # at the start or behind white space. A # inside
// a word can be part of a password.
func stripComment(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] == '#' && (i == 0 || s[i-1] == ' ' || s[i-1] == '\t') {
			return strings.TrimSpace(s[:i])
		}
	}
	return s
}

// parse reads one line in the form that it has.
func (l *List) parse(text string) (Entry, error) {
	e := Entry{Line: l.line}
	var err error
	if strings.HasPrefix(text, "{") {
		err = l.parseRecord(text, &e)
	} else {
		word, _, _ := strings.Cut(text, " ")
		word, _, _ = strings.Cut(word, "\t")
		e.Proxy, err = Parse(word, l.opts.Scheme)
	}
	if err != nil {
		return e, err
	}
	if name := e.Proxy.Special(); name != "" && !l.opts.AllowSpecial {
		return e, fmt.Errorf("special-purpose address (%s): say --allow-special, or allow_special=true in the API, if the proxy is your own", name)
	}
	return e, nil
}

// record is a proxy as a JSON object on one line: the article's own form.
type record struct {
	Host      string            `json:"host"`
	Port      json.Number       `json:"port"`
	Scheme    string            `json:"scheme"`
	Username  *string           `json:"username"`
	Password  *string           `json:"password"`
	Region    string            `json:"region"`
	Group     string            `json:"group"`
	Labels    map[string]string `json:"labels"`
	Cap       int               `json:"cap"`
	ExpiresAt *json.Number      `json:"expires_at"` // seconds since 1970
}

// maxSeconds bounds expiry times: the year 9999.
const maxSeconds = 253_402_300_799

func (l *List) parseRecord(text string, e *Entry) error {
	var r record
	if err := json.Unmarshal([]byte(strings.TrimSuffix(text, ",")), &r); err != nil {
		return errors.New("not a JSON object with the fields of a proxy")
	}
	p := Proxy{Scheme: l.opts.Scheme, Host: r.Host}
	if r.Scheme != "" {
		scheme, err := ParseScheme(r.Scheme)
		if err != nil {
			return err
		}
		p.Scheme = scheme
	}
	port, err := parsePort(r.Port.String())
	if err != nil {
		return err
	}
	p.Port = port
	if r.Username != nil {
		p.Username = *r.Username
	}
	if r.Password != nil {
		p.Password = Secret(*r.Password)
	}
	if r.ExpiresAt != nil {
		n, err := r.ExpiresAt.Int64()
		if err != nil || n < 0 || n > maxSeconds {
			return errors.New("expires_at is not a number of seconds since 1970")
		}
		if n > 0 {
			e.ExpiresAt = time.Unix(n, 0).UTC()
		}
	}
	e.Proxy, e.Region, e.Group, e.Labels, e.Cap = p, r.Region, r.Group, r.Labels, max(0, r.Cap)
	return p.Validate()
}
