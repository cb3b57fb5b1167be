package proxy

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// Entry is what one line of a list says; fields that it does not say are zero.
type Entry struct {
	Line      int
	Proxy     Proxy
	Region    string
	Group     string
	Labels    map[string]string
	Exit      string // static, rotating, template
	ExpiresAt time.Time
	Cap       int
}

// ListOptions say how a list is read.
type ListOptions struct {
	// Format is the list's form; auto if empty.
	Format Format
	// Scheme is that of lines that name none; http if empty.
	Scheme Scheme
	// MapScheme takes proxies of one scheme for those of another: many lists say
	// https for proxies that take CONNECT and do not speak TLS themselves.
	MapScheme map[Scheme]Scheme
	// Columns are the header of a CSV list that has none.
	Columns []string
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

// reader reads one form of list.
type reader interface {
	// next gives the next proxy. io.EOF ends the list; any other error is about
	// line e.Line only, and the next call goes on behind it.
	next() (e Entry, err error)
}

// List reads a list of proxies from a stream. Neither the list nor what is
// wrong in it is ever in memory as a whole, and a bad line never stops the rest.
type List struct {
	opts     ListOptions
	text     lines
	form     reader
	rejected []Rejection
	ignored  []Rejection
	noted    map[string]bool
	rejects  int
}

// ReadList begins to read a list.
func ReadList(r io.Reader, opts ListOptions) *List {
	if opts.Scheme == "" {
		opts.Scheme = SchemeHTTP
	}
	return &List{opts: opts, text: lines{in: openText(r)}, noted: map[string]bool{}}
}

// Next gives the next proxy; ok is false at the end of the list.
func (l *List) Next() (e Entry, ok bool) {
	if l.form == nil {
		l.form = l.reader()
	}
	for {
		e, err := l.form.next()
		switch {
		case err == nil:
			err = l.admit(&e)
		case errors.Is(err, io.EOF):
			return Entry{}, false
		}
		if err == nil {
			return e, true
		}
		l.reject(e.Line, err.Error())
	}
}

// reader is that of the list's form.
func (l *List) reader() reader {
	format := l.opts.Format
	if (format == "" || format == FormatAuto) && len(l.opts.Columns) > 0 {
		format = FormatCSV
	}
	if format == "" || format == FormatAuto {
		var err error
		if format, err = detect(l.text.in); err != nil {
			return &noReader{err: err}
		}
	}
	switch format {
	case FormatCSV:
		return &csvReader{list: l}
	case FormatJSON:
		return &jsonReader{list: l, source: jsonSource{in: l.text.in, line: 1}}
	case FormatJSONL:
		return &jsonlReader{list: l}
	case FormatURL:
		return &lineReader{list: l, as: formURL}
	case FormatHostPort:
		return &lineReader{list: l, as: formHost}
	case FormatUserPass:
		return &lineReader{list: l, as: formUser}
	case FormatAuto, FormatLines:
		return &lineReader{list: l}
	}
	return &noReader{err: fmt.Errorf("format %s is not known", quoted(string(format)))}
}

// noReader refuses what is no list.
type noReader struct{ err error }

func (r *noReader) next() (Entry, error) {
	err := r.err
	r.err = io.EOF
	return Entry{Line: 1}, err
}

// admit applies the list's options to an entry.
func (l *List) admit(e *Entry) error {
	if to, ok := l.opts.MapScheme[e.Proxy.Scheme]; ok {
		e.Proxy.Scheme = to
	}
	if l.opts.AllowSpecial {
		return nil
	}
	if name := e.Proxy.Special(); name != "" {
		return fmt.Errorf("special-purpose address (%s): say --allow-special, or allow_special=true in the API, if the proxy is your own", name)
	}
	return nil
}

// Rejected lists the lines that gave no proxy, the first thousand of them.
func (l *List) Rejected() []Rejection { return l.rejected }

// RejectedCount counts all of them.
func (l *List) RejectedCount() int { return l.rejects }

// Ignored lists what was understood and left aside, such as keys that say
// nothing of a proxy: each once, with the first line that has it.
func (l *List) Ignored() []Rejection { return l.ignored }

// Err is the error of reading the stream, if there was one.
func (l *List) Err() error { return l.text.err }

func (l *List) reject(line int, reason string) {
	if l.rejects++; len(l.rejected) < maxKept {
		l.rejected = append(l.rejected, Rejection{line, clean(reason)})
	}
}

// maxNoted bounds what is remembered as left aside.
const maxNoted = 100

// note says once that something was left aside.
func (l *List) note(line int, kind, name string) {
	key := kind + name
	if l.noted[key] || len(l.noted) == maxNoted {
		return
	}
	l.noted[key] = true
	if len(name) > 40 {
		name = name[:40] + "..."
	}
	text := kind
	if name != "" {
		text = fmt.Sprintf("%s %q", kind, name)
	}
	l.ignored = append(l.ignored, Rejection{line, clean(text + " is left aside")})
}
