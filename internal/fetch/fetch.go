package fetch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"time"

	"github.com/hostler-proxy/hostler/internal/proxy"
	"github.com/hostler-proxy/hostler/internal/source"
)

// Fetcher reads sources. The zero value is usable; it is safe for concurrent use.
type Fetcher struct {
	// Env is the environment that credentials come from; nil = the process's.
	Env source.Environment
	// Resolver replaces the system's in tests.
	Resolver *net.Resolver
}

// Mark recognises a set that was seen before.
type Mark struct {
	ETag, LastModified string // of a URL
	Sum                string // of a file's content
}

// Result is what a source says.
type Result struct {
	Entries  []proxy.Entry
	Rejected []proxy.Rejection // the first of them
	Rejects  int               // all of them
	// Unchanged says that it is what the mark stands for; nothing else is set then.
	Unchanged bool
	Mark      Mark
}

// Error is why a source gave no list. Its text can be shown.
type Error struct {
	Text string
	// After is what the server asks to wait; 0 = it did not say.
	After time.Duration
}

// Error gives the text.
func (f *Error) Error() string { return f.Text }

func faultf(format string, args ...any) error { return &Error{Text: fmt.Sprintf(format, args...)} }

// Fetch reads a source; last is the mark of the set in force. Its error is a
// *Error, or that of ctx.
func (f *Fetcher) Fetch(ctx context.Context, s *source.Source, last Mark) (*Result, error) {
	switch s.Kind {
	case source.KindFile:
		return f.file(s, last)
	case source.KindPreset:
		list, err := s.Templates(f.Environment())
		if err != nil {
			return nil, faultf("%v", err)
		}
		return &Result{Entries: list}, nil
	case source.KindURL, source.KindJSON:
	}
	bounded, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	res, err := f.web(bounded, s, last)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return res, err
}

// Environment is where credentials come from.
func (f *Fetcher) Environment() source.Environment {
	if f.Env != nil {
		return f.Env
	}
	return os.LookupEnv
}

// list reads a list in any form.
func list(body []byte, s *source.Source) (*Result, error) {
	if page(body) {
		return nil, faultf("the answer is a web page and not a list")
	}
	if cutOff(body) {
		return nil, faultf("the answer begins as JSON and does not end as such: it was cut off or is damaged")
	}
	in := proxy.ReadList(bytes.NewReader(body), proxy.ListOptions{Format: s.Format, Scheme: s.Scheme, AllowSpecial: s.AllowSpecial})
	res := &Result{}
	for e, ok := in.Next(); ok; e, ok = in.Next() {
		res.Entries = append(res.Entries, e)
	}
	res.Rejected, res.Rejects = in.Rejected(), in.RejectedCount()
	return res, nil
}

// page says whether a text is HTML or XML: no list begins with <.
func page(body []byte) bool {
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")))
	return bytes.HasPrefix(body, []byte("<"))
}

// cutOff says whether a text begins as JSON and breaks off. A list of lines cannot
// tell; an object a line may hold broken ones, which its reader names.
func cutOff(body []byte) bool {
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")))
	if inner, array := bytes.CutPrefix(body, []byte("[")); array {
		inner = bytes.TrimSpace(inner) // not an IPv6 address in brackets
		return (len(inner) == 0 || bytes.ContainsRune([]byte(`{["]`), rune(inner[0]))) && !json.Valid(body)
	}
	if !bytes.HasPrefix(body, []byte("{")) {
		return false
	}
	d := json.NewDecoder(bytes.NewReader(body))
	var err error
	for err == nil {
		var object json.RawMessage
		err = d.Decode(&object)
	}
	return errors.Is(err, io.ErrUnexpectedEOF)
}

// file reads a file that somebody may be writing.
func (f *Fetcher) file(s *source.Source, last Mark) (*Result, error) {
	body, err := readFile(s.File, s.MaxBytes)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body)
	mark := Mark{Sum: hex.EncodeToString(sum[:])}
	if mark == last {
		return &Result{Unchanged: true, Mark: mark}, nil
	}
	res, err := list(body, s)
	if err == nil {
		res.Mark = mark
	}
	return res, err
}

func readFile(name string, most int64) ([]byte, error) {
	before, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, faultf("there is no such file")
	case err != nil:
		return nil, faultf("the file cannot be looked at")
	case !before.Mode().IsRegular():
		return nil, faultf("it is not a regular file")
	}
	in, err := os.Open(name) //nolint:gosec // the operator names it
	if err != nil {
		return nil, faultf("the file cannot be opened: is it readable for the daemon's user?")
	}
	defer in.Close() //nolint:errcheck // only read
	body, err := io.ReadAll(io.LimitReader(in, most+1))
	switch after, again := in.Stat(); {
	case err != nil || again != nil:
		return nil, faultf("the file cannot be read")
	case int64(len(body)) > most:
		return nil, faultf("the file is larger than max_bytes, %d", most)
	case after.Size() != int64(len(body)) || !after.ModTime().Equal(before.ModTime()):
		return nil, faultf("the file changed while it was read; it is read again")
	}
	return body, nil
}

// Stamp tells when a file may have changed, without reading it; "" = it is not there.
func Stamp(name string) string {
	info, err := os.Stat(name)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d %d", info.Size(), info.ModTime().UnixNano())
}
