package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// maxLine bounds a line, and a record that goes on over several.
const maxLine = 64 << 10

// openText gives a list's text as UTF-8 without a byte order mark. UTF-16 is
// known by its mark, or by the zero bytes that no list has otherwise.
func openText(r io.Reader) *bufio.Reader {
	in := bufio.NewReaderSize(r, maxLine)
	head, _ := in.Peek(4) // an error comes again with the next read
	switch {
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		_, _ = in.Discard(3)
	case bytes.HasPrefix(head, []byte("\xff\xfe")):
		_, _ = in.Discard(2)
		return wide(in, 0)
	case bytes.HasPrefix(head, []byte("\xfe\xff")):
		_, _ = in.Discard(2)
		return wide(in, 1)
	case len(head) == 4 && head[0] != 0 && head[1] == 0 && head[2] != 0 && head[3] == 0:
		return wide(in, 0)
	case len(head) == 4 && head[0] == 0 && head[1] != 0 && head[2] == 0 && head[3] != 0:
		return wide(in, 1)
	}
	return in
}

func wide(in *bufio.Reader, low int) *bufio.Reader {
	return bufio.NewReaderSize(&utf16Reader{in: in, low: low}, maxLine)
}

// utf16Reader converts UTF-16 to UTF-8. What is not UTF-16 becomes the byte
// 0xff, so that its line is refused and not read with another text.
type utf16Reader struct {
	in   *bufio.Reader
	low  int // place of the low byte in a unit
	high uint16
	buf  [4096]byte
	out  []byte
	err  error
}

// Read reads on.
func (u *utf16Reader) Read(p []byte) (int, error) {
	if len(u.out) == 0 {
		u.out = u.buf[:0]
		for u.err == nil && len(u.out)+8 <= len(u.buf) {
			u.err = u.convert()
		}
	}
	if len(u.out) == 0 {
		return 0, u.err
	}
	n := copy(p, u.out)
	u.out = u.out[n:]
	return n, nil
}

// convert takes one unit.
func (u *utf16Reader) convert() error {
	var unit [2]byte
	if _, err := io.ReadFull(u.in, unit[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || u.high != 0 && errors.Is(err, io.EOF) {
			u.out = append(u.out, 0xff)
			return io.EOF
		}
		return err
	}
	c := uint16(unit[u.low]) | uint16(unit[1-u.low])<<8
	if u.high != 0 {
		r := utf16.DecodeRune(rune(u.high), rune(c))
		u.high = 0
		if r != utf8.RuneError {
			u.out = utf8.AppendRune(u.out, r)
			return nil
		}
		u.out = append(u.out, 0xff)
	}
	switch {
	case c >= 0xd800 && c < 0xdc00:
		u.high = c
	case c >= 0xdc00 && c < 0xe000:
		u.out = append(u.out, 0xff)
	default:
		u.out = utf8.AppendRune(u.out, rune(c))
	}
	return nil
}

// lines gives a text line by line.
type lines struct {
	in   *bufio.Reader
	n    int // of the line that was given last
	back []string
	end  bool
	err  error // of the stream
}

var (
	errLong    = errors.New("the line is longer than 64 KiB")
	errNotText = errors.New("the line is not UTF-8")
)

// next gives the next line without its end; io.EOF behind the last. Another error is about this line only. What stands behind
// the last line end of a stream that broke off is not given: it can be half a line.
func (l *lines) next() (string, error) {
	if k := len(l.back); k > 0 {
		text := l.back[k-1]
		l.back = l.back[:k-1]
		l.n++
		return text, nil
	}
	if l.end {
		return "", io.EOF
	}
	l.n++
	raw, err := l.in.ReadSlice('\n')
	long := false
	for errors.Is(err, bufio.ErrBufferFull) {
		long = true
		_, err = l.in.ReadSlice('\n')
	}
	if err != nil {
		l.end = true
		if !errors.Is(err, io.EOF) {
			l.err = err
			return "", io.EOF
		}
	}
	switch {
	case long:
		return "", errLong
	case !utf8.Valid(raw):
		return "", errNotText
	}
	return string(bytes.TrimSuffix(bytes.TrimSuffix(raw, []byte("\n")), []byte("\r"))), nil
}

// unread gives lines back that come again, the first first.
func (l *lines) unread(texts []string) {
	for _, text := range slices.Backward(texts) {
		l.back = append(l.back, text)
	}
	l.n -= len(texts)
}
