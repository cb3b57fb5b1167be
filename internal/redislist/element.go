package redislist

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"github.com/hostler-proxy/hostler/internal/proxy"
)

// element is one element as a JSON line: a record in one line, or a string that
// holds a line of a list.
func element(text string) []byte {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "{") {
		var b bytes.Buffer
		if json.Compact(&b, []byte(text)) == nil {
			return b.Bytes()
		}
	}
	raw, err := json.Marshal(text)
	if err != nil {
		return []byte(`""`) // cannot be: a string
	}
	return raw
}

// pair is one field of a hash. Some pools keep the proxy in the field and a
// score in the value, some an id in the field and the proxy in the value, and
// some both in both. Where they name two proxies the record that comes out
// does too, and is refused as ambiguous.
func pair(field, value string) []byte {
	inField, errField := proxy.ReadEntry(field, proxy.SchemeHTTP)
	inValue, errValue := proxy.ReadEntry(value, proxy.SchemeHTTP)
	switch {
	case errValue != nil:
		return element(field)
	case errField != nil || inField.Proxy.Canonical() == inValue.Proxy.Canonical():
		return element(value)
	}
	raw, err := json.Marshal(map[string]string{"proxy": inField.Proxy.URL().String(), "url": inValue.Proxy.URL().String()})
	if err != nil {
		return []byte(`{}`) // cannot be: strings
	}
	return raw
}

func write(to io.Writer, list []string, line func(string) []byte) error {
	var b bytes.Buffer
	for _, text := range list {
		b.Write(line(text))
		b.WriteByte('\n')
	}
	_, err := to.Write(b.Bytes())
	return err
}

func writePairs(to io.Writer, list []string) error {
	var b bytes.Buffer
	for i := 0; i+1 < len(list); i += 2 {
		b.Write(pair(list[i], list[i+1]))
		b.WriteByte('\n')
	}
	_, err := to.Write(b.Bytes())
	return err
}
