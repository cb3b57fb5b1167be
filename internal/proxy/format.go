package proxy

import (
	"bufio"
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Format is the form of a list.
type Format string

// The formats. All but auto and lines can be written too.
const (
	FormatAuto     Format = "auto"     // found from how the list begins
	FormatLines    Format = "lines"    // one proxy a line, each in any form
	FormatURL      Format = "url"      // scheme://user:pass@host:port
	FormatHostPort Format = "hostport" // host:port:user:pass
	FormatUserPass Format = "userpass" // user:pass:host:port
	FormatCSV      Format = "csv"      // cells under a header
	FormatJSON     Format = "json"     // an array, or an object with a list inside
	FormatJSONL    Format = "jsonl"    // one JSON object a line
)

// Formats are the forms that a list can be read in.
func Formats() []Format {
	return []Format{FormatAuto, FormatLines, FormatURL, FormatHostPort, FormatUserPass, FormatCSV, FormatJSON, FormatJSONL}
}

// ParseFormat reads the name of a format; "" is auto.
func ParseFormat(s string) (Format, error) {
	if s == "" {
		return FormatAuto, nil
	}
	if slices.Contains(Formats(), Format(s)) {
		return Format(s), nil
	}
	return "", fmt.Errorf("format %s is not one of auto, lines, url, hostport, userpass, csv, json, jsonl", quoted(s))
}

// detect tells the form of a list from how it begins. What is no list at all
// gives a reason instead.
func detect(in *bufio.Reader) (Format, error) {
	head, _ := in.Peek(maxLine) // an error comes again with the next read
	first, rest := firstLine(head)
	switch {
	case len(first) == 0:
		return FormatLines, nil
	case bytes.HasPrefix(first, []byte("\x1f\x8b")), bytes.HasPrefix(first, []byte("PK\x03\x04")):
		return "", fmt.Errorf("the list is packed (gzip, zip or a spreadsheet): unpack it, or save it as CSV")
	case first[0] == '<' && len(first) > 1 && (first[1] == '!' || first[1] == '?' || first[1]|0x20 >= 'a' && first[1]|0x20 <= 'z'):
		return "", fmt.Errorf("this is a page (HTML or XML) and not a list")
	case first[0] == '[' && opensArray(first[1:], rest):
		return FormatJSON, nil
	case first[0] == '{':
		return detectObject(first, rest, len(head) == maxLine && len(rest) == 0), nil
	}
	if _, ok := readHeader(string(first)); ok && !isProxy(string(first)) {
		return FormatCSV, nil
	}
	return FormatLines, nil
}

// firstLine gives the first line that is neither empty nor a comment.
func firstLine(text []byte) (first, rest []byte) {
	for len(text) > 0 {
		line, more, _ := bytes.Cut(text, []byte("\n"))
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return line, more
		}
		text = more
	}
	return nil, nil
}

// opensArray tells a JSON array from an IPv6 address in brackets.
func opensArray(line, rest []byte) bool {
	if line = bytes.TrimSpace(line); len(line) == 0 {
		line = bytes.TrimSpace(rest)
	}
	return len(line) == 0 || strings.IndexByte(`{["]`, line[0]) >= 0
}

// detectObject tells one object, which may hold a list, from objects line by line.
func detectObject(first, rest []byte, cut bool) Format {
	var s scanner
	err := s.through(string(first))
	next, _ := firstLine(rest)
	switch {
	case cut:
		return FormatJSON // too long for a record: a list inside
	case err != nil:
		return FormatLines // the line is broken by itself
	case s.depth() > 0, len(next) == 0:
		return FormatJSON
	}
	return FormatLines
}

// isProxy says whether a text reads as a proxy.
func isProxy(text string) bool {
	_, err := parse(text, SchemeHTTP, formAny)
	return err == nil
}
