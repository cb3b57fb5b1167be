package proxy

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ListWriter writes a list of proxies, one after the other. What it writes is
// read again as the same proxies when it holds their passwords.
type ListWriter struct {
	out       *bufio.Writer
	format    Format
	passwords bool
	n         int
	line      []byte
}

// WriteList begins to write a list. The formats url, hostport and userpass carry
// who a proxy is; csv, json and jsonl also what is said of it.
func WriteList(w io.Writer, format Format, passwords bool) (*ListWriter, error) {
	switch format {
	case FormatURL, FormatHostPort, FormatUserPass, FormatCSV, FormatJSON, FormatJSONL:
	case FormatAuto, FormatLines:
		return nil, fmt.Errorf("format %s is for reading: write url, hostport, userpass, csv, json or jsonl", format)
	default:
		return nil, fmt.Errorf("format %s is not one of url, hostport, userpass, csv, json, jsonl", quoted(string(format)))
	}
	return &ListWriter{out: bufio.NewWriterSize(w, 32<<10), format: format, passwords: passwords}, nil
}

// Write adds a proxy.
func (w *ListWriter) Write(e Entry) error {
	if !w.passwords {
		e.Proxy.Password = ""
	}
	w.line = w.line[:0]
	switch w.format {
	case FormatURL:
		w.line = append(w.line, plainURL(e.Proxy)...)
	case FormatHostPort:
		w.line = append(w.line, colons(e.Proxy, false)...)
	case FormatUserPass:
		w.line = append(w.line, colons(e.Proxy, true)...)
	case FormatCSV:
		if w.n == 0 {
			w.line = append(w.line, strings.Join(columns, ",")+"\n"...)
		}
		w.line = appendRow(w.line, e)
	case FormatJSON:
		w.line = append(w.line, "[\n"[min(w.n, 1)*2:]...)
		if w.n > 0 {
			w.line = append(w.line, ",\n"...)
		}
		w.line = appendObject(w.line, e)
	case FormatJSONL:
		w.line = appendObject(w.line, e)
	case FormatAuto, FormatLines: // refused at the start
	}
	if w.format != FormatJSON {
		w.line = append(w.line, '\n')
	}
	w.n++
	_, err := w.out.Write(w.line)
	return err
}

// Close ends the list; it does not close what it is written to.
func (w *ListWriter) Close() error {
	end := ""
	switch {
	case w.format == FormatJSON && w.n == 0:
		end = "[]\n"
	case w.format == FormatJSON:
		end = "\n]\n"
	case w.format == FormatCSV && w.n == 0:
		end = strings.Join(columns, ",") + "\n"
	}
	if _, err := w.out.WriteString(end); err != nil {
		return err
	}
	return w.out.Flush()
}

// plainURL is a proxy's URL with every sign escaped that a list could give a
// meaning to.
func plainURL(p Proxy) string {
	text := p.Address()
	if p.Username != "" || p.Password != "" {
		user := escape(p.Username)
		if p.Password != "" {
			user += ":" + escape(p.Password.Reveal())
		}
		text = user + "@" + text
	}
	return string(p.Scheme) + "://" + text
}

func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// colons writes host:port:user:pass, or user:pass:host:port. A scheme other than
// http goes before; what could be read otherwise is written as a URL.
func colons(p Proxy, userFirst bool) string {
	text := p.Address()
	switch {
	case p.Username == "" && p.Password == "":
	case userFirst:
		text = p.Username + ":" + p.Password.Reveal() + ":" + text
	case p.Password == "":
		text += ":" + p.Username
	default:
		text += ":" + p.Username + ":" + p.Password.Reveal()
	}
	if p.Scheme != SchemeHTTP {
		text = string(p.Scheme) + "://" + text
	}
	if strings.IndexByte(`#{"<`, text[0]) >= 0 || userFirst && text[0] == '[' && p.Username != "" || text != strings.TrimSpace(text) || stripComment(text) != text {
		return plainURL(p)
	}
	if e, err := ReadEntry(text, SchemeHTTP); err != nil || e.Proxy != p {
		return plainURL(p)
	}
	return text
}

// columns are those of a written CSV list.
var columns = []string{"scheme", "host", "port", "username", "password", "region", "group", "labels", "exit", "cap", "expires_at"}

func appendRow(b []byte, e Entry) []byte {
	limit := ""
	if e.Cap > 0 {
		limit = strconv.Itoa(e.Cap)
	}
	cells := [...]string{
		string(e.Proxy.Scheme), e.Proxy.Host, strconv.Itoa(int(e.Proxy.Port)), e.Proxy.Username, e.Proxy.Password.Reveal(),
		e.Region, e.Group, labelsText(e.Labels), e.Exit, limit, expiryText(e.ExpiresAt),
	}
	for i, cell := range cells {
		if i > 0 {
			b = append(b, ',')
		}
		if strings.ContainsAny(cell, "\",;|\t ") {
			cell = `"` + strings.ReplaceAll(cell, `"`, `""`) + `"`
		}
		b = append(b, cell...)
	}
	return b
}

func labelsText(labels map[string]string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, key+"="+labels[key])
	}
	return strings.Join(parts, ",")
}

func expiryText(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// object is a proxy as it is written in JSON.
type object struct {
	Scheme    Scheme            `json:"scheme"`
	Host      string            `json:"host"`
	Port      uint16            `json:"port"`
	Username  string            `json:"username,omitempty"`
	Password  string            `json:"password,omitempty"`
	Region    string            `json:"region,omitempty"`
	Group     string            `json:"group,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	Exit      string            `json:"exit,omitempty"`
	Cap       int               `json:"cap,omitempty"`
	ExpiresAt string            `json:"expires_at,omitempty"`
}

func appendObject(b []byte, e Entry) []byte {
	raw, err := json.Marshal(object{ //nolint:gosec // the password is what was asked for
		e.Proxy.Scheme, e.Proxy.Host, e.Proxy.Port, e.Proxy.Username, e.Proxy.Password.Reveal(), e.Region, e.Group, e.Labels, e.Exit, e.Cap,
		expiryText(e.ExpiresAt),
	})
	if err != nil {
		return b // cannot be: texts and numbers
	}
	return append(b, raw...)
}
