package proxy

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// csvReader reads rows of cells under a header (RFC 4180). The header names the
// columns, in any order; a column with the name of a scheme holds proxies of
// that scheme.
type csvReader struct {
	list   *List
	header *header
	line   int
	more   entries
	late   []late
	aside  bool // rows hold more than is taken
}

// late is a cell of a scheme column that was not read yet, with what its row
// says beside.
type late struct {
	text   string
	scheme Scheme
	row    *record
}

// header is what the columns mean.
type header struct {
	comma   byte
	fields  []field
	schemes []Scheme // "" for a column that is not named after a scheme
	names   []string
}

// readHeader reads a header; ok is false if the line is none.
func readHeader(line string) (*header, bool) {
	var found *header
	for _, comma := range []byte{',', ';', '\t', '|'} {
		cells, open, err := splitRow(line, comma)
		if err != nil || open || len(cells) < 2 {
			continue
		}
		if h := newHeader(cells, comma); h.usable() {
			if found != nil {
				return nil, false
			}
			found = h
		}
	}
	return found, found != nil
}

func newHeader(cells []string, comma byte) *header {
	h := &header{comma: comma}
	for _, cell := range cells {
		cell = strings.TrimSpace(cell)
		f, scheme := fieldOf(cell), Scheme("")
		if s, err := ParseScheme(cell); err == nil {
			scheme = s
		}
		h.fields, h.schemes, h.names = append(h.fields, f), append(h.schemes, scheme), append(h.names, cell)
	}
	return h
}

// usable says whether the columns tell where a proxy is: by its address or by
// columns named after schemes, and not both. A column https beside an address
// says as a rule that the proxy takes CONNECT; it is left aside.
func (h *header) usable() bool {
	address, byScheme, only := false, false, true
	for i, f := range h.fields {
		address = address || f == fieldHost || f == fieldProxy
		byScheme = byScheme || h.schemes[i] != ""
		only = only && (h.schemes[i] == "" || h.schemes[i] == SchemeHTTPS)
	}
	if address && byScheme && only {
		h.schemes = make([]Scheme, len(h.fields))
		byScheme = false
	}
	return address != byScheme
}

var errNoHeader = errors.New("the first line is not a header that names the columns: host and port, or proxy, or one column for each scheme; --columns, or columns= in the API, gives the names too")

func (r *csvReader) next() (Entry, error) {
	for {
		if e, ok := r.more.take(); ok {
			return e, nil
		}
		if len(r.late) > 0 {
			cell := r.late[0]
			r.late = r.late[1:]
			rec := *cell.row
			rec.said[fieldProxy], rec.said[fieldScheme] = cell.text, string(cell.scheme)
			return r.more.from(&rec, r.line, cell.scheme)
		}
		cells, err := r.cells()
		if err != nil {
			return Entry{Line: r.line}, err
		}
		rec, err := r.record(cells)
		if err != nil {
			return Entry{Line: r.line}, err
		}
		if len(r.late) == 0 {
			return r.more.from(rec, r.line, r.list.opts.Scheme)
		}
	}
}

// cells gives the next row that is neither the header nor empty.
func (r *csvReader) cells() ([]string, error) {
	for {
		text, err := r.list.text.next()
		r.line = r.list.text.n
		if err != nil {
			return nil, err
		}
		if strings.Trim(text, " \t,;|") == "" || r.comment(text) {
			continue
		}
		if r.header == nil {
			if taken, err := r.begin(text); err != nil {
				return nil, err
			} else if taken {
				continue
			}
		}
		return r.row(text)
	}
}

// comment says whether a line is a comment: below the header only if it has not
// as many cells as a row, whose first cell may begin with a #.
func (r *csvReader) comment(text string) bool {
	if text[0] != '#' || r.header == nil {
		return text[0] == '#'
	}
	cells, open, err := splitRow(text, r.header.comma)
	return open || err != nil || len(cells) != len(r.header.fields)
}

// begin finds the header; taken says that the line was it.
func (r *csvReader) begin(text string) (taken bool, err error) {
	if named := r.list.opts.Columns; len(named) > 0 {
		if r.header = newHeader(named, commaOf(text)); r.header.usable() {
			return false, nil
		}
		r.list.text.end = true
		return false, errors.New("the columns name neither host, proxy nor schemes, or both")
	}
	h, ok := readHeader(text)
	if !ok {
		if f := fieldOf(text); f == fieldHost || f == fieldProxy {
			h = newHeader([]string{text}, ',') // a single column
		} else {
			r.list.text.end = true // no row can be read without names
			return false, errNoHeader
		}
	}
	r.header = h
	for i, f := range h.fields {
		if (f == fieldNone || f == fieldAside) && h.schemes[i] == "" {
			r.aside = true
			r.list.note(r.line, "column", h.names[i])
		}
	}
	return true, nil
}

// commaOf finds the separator of rows whose header was given.
func commaOf(text string) byte {
	for _, comma := range []byte{',', ';', '\t', '|'} {
		if strings.IndexByte(text, comma) >= 0 {
			return comma
		}
	}
	return ','
}

// row splits a row, with the lines that a quoted cell goes on over.
func (r *csvReader) row(first string) ([]string, error) {
	cells, open, err := splitRow(first, r.header.comma)
	if !open {
		return r.fits(cells, err)
	}
	text, taken := first, []string(nil)
	for open && err == nil && len(taken) < maxRowLines {
		line, errLine := r.list.text.next()
		if errLine != nil {
			if errors.Is(errLine, io.EOF) {
				break
			}
			line = ""
		}
		taken = append(taken, line)
		if text += "\n" + line; len(text) > maxLine {
			break
		}
		cells, open, err = splitRow(text, r.header.comma)
	}
	if open || err != nil {
		r.list.text.unread(taken) // only the first line is lost
		return nil, errors.New("a quoted cell does not end")
	}
	return r.fits(cells, err)
}

// maxRowLines bounds the lines of a row; no field of a proxy holds line ends.
const maxRowLines = 16

func (r *csvReader) fits(cells []string, err error) ([]string, error) {
	switch {
	case err != nil:
		return nil, err
	case len(cells) != len(r.header.fields):
		return nil, fmt.Errorf("the row has %d cells and the header %d", len(cells), len(r.header.fields))
	}
	return cells, nil
}

// record gathers what a row says. Proxies in scheme columns are read later.
func (r *csvReader) record(cells []string) (*record, error) {
	rec := &record{}
	for i, cell := range cells {
		if scheme := r.header.schemes[i]; scheme != "" {
			if cell = strings.TrimSpace(cell); cell != "" {
				r.late = append(r.late, late{cell, scheme, rec})
			}
			continue
		}
		if r.aside {
			cell = strings.Clone(cell) // what is left aside must not stay in memory with it
		}
		if err := rec.set(r.header.fields[i], cell); err != nil {
			r.late = nil
			return nil, err
		}
	}
	return rec, nil
}

// from gives the proxy of a record; those under further schemes come later.
func (m *entries) from(rec *record, line int, scheme Scheme) (Entry, error) {
	e, more, err := rec.entry(scheme)
	e.Line = line
	for _, scheme := range more {
		also := e
		also.Proxy.Scheme = scheme
		*m = append(*m, also)
	}
	return e, err
}

var (
	errQuote  = errors.New("a quote stands inside a cell: quote the cell and write the quote twice")
	errBehind = errors.New("there is text behind a quoted cell")
)

// splitRow splits cells. Open says that a quoted cell does not end.
func splitRow(text string, comma byte) (cells []string, open bool, err error) {
	for {
		if !strings.HasPrefix(text, `"`) {
			end := strings.IndexByte(text, comma)
			cell := text
			if end >= 0 {
				cell = text[:end]
			}
			if strings.IndexByte(cell, '"') >= 0 {
				return nil, false, errQuote
			}
			cells = append(cells, cell)
			if end < 0 {
				return cells, false, nil
			}
			text = text[end+1:]
			continue
		}
		cell, rest, ok := quotedCell(text[1:])
		if !ok {
			return nil, true, nil
		}
		cells = append(cells, cell)
		switch {
		case rest == "":
			return cells, false, nil
		case rest[0] != comma:
			return nil, false, errBehind
		}
		text = rest[1:]
	}
}

// quotedCell takes a quoted cell behind its first quote.
func quotedCell(text string) (cell, rest string, ok bool) {
	var b strings.Builder
	for {
		end := strings.IndexByte(text, '"')
		if end < 0 {
			return "", "", false
		}
		b.WriteString(text[:end])
		text = text[end+1:]
		if !strings.HasPrefix(text, `"`) {
			return b.String(), text, true
		}
		b.WriteByte('"')
		text = text[1:]
	}
}
