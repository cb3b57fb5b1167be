package source

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"time"

	"github.com/hostler-proxy/hostler/internal/proxy"
)

// packed is an entry as it is kept, password and all.
type packed struct {
	Line     int               `json:"n"`
	Scheme   proxy.Scheme      `json:"s"`
	Host     string            `json:"h"`
	Port     uint16            `json:"p"`
	Username string            `json:"u,omitempty"`
	Password string            `json:"w,omitempty"`
	Region   string            `json:"r,omitempty"`
	Group    string            `json:"g,omitempty"`
	Labels   map[string]string `json:"l,omitempty"`
	Cap      int               `json:"c,omitempty"`
	Expires  int64             `json:"e,omitempty"`
}

// Pack writes a set that waits, for the store.
func Pack(list []proxy.Entry) ([]byte, error) {
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	out := json.NewEncoder(zip)
	for _, e := range list {
		p := packed{
			e.Line, e.Proxy.Scheme, e.Proxy.Host, e.Proxy.Port, e.Proxy.Username, e.Proxy.Password.Reveal(),
			e.Region, e.Group, e.Labels, e.Cap, 0,
		}
		if !e.ExpiresAt.IsZero() {
			p.Expires = e.ExpiresAt.Unix()
		}
		if err := out.Encode(p); err != nil { //nolint:gosec // into the store, which keeps passwords
			return nil, err
		}
	}
	err := zip.Close()
	return b.Bytes(), err
}

// Unpack reads what Pack wrote.
func Unpack(raw []byte) (list []proxy.Entry, err error) {
	damaged := errors.New("the set that waits is damaged: refresh the source")
	zip, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, damaged
	}
	in := json.NewDecoder(zip)
	for in.More() {
		var p packed
		if err := in.Decode(&p); err != nil {
			return nil, damaged
		}
		e := proxy.Entry{
			Line: p.Line, Region: p.Region, Group: p.Group, Labels: p.Labels, Cap: p.Cap,
			Proxy: proxy.Proxy{Scheme: p.Scheme, Host: p.Host, Port: p.Port, Username: p.Username, Password: proxy.Secret(p.Password)},
		}
		if p.Expires != 0 {
			e.ExpiresAt = time.Unix(p.Expires, 0).UTC()
		}
		list = append(list, e)
	}
	return list, nil
}
