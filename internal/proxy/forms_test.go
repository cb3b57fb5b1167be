package proxy_test

import (
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hostler-proxy/hostler/internal/proxy"
)

func csvCases() []listCase {
	return []listCase{
		{
			name: "names in any order and spelling", text: "Pass;IP Address;Port;Protocol;Login;Country-Code;speed\n\"pa;ss\"\"word\";8.8.8.8;80;SOCKS5;bob;DE;9\n;8.8.4.4;81;;;;\n",
			want: []string{"socks5://bob:pa;ss%22word@8.8.8.8:80 in DE", "http://8.8.4.4:81"}, ignored: 1,
		},
		{name: "tabs", text: "proxy\tcountry\nu:p@8.8.8.8:80\tUS\n8.8.4.4:80\t\n", want: []string{"http://u:p@8.8.8.8:80 in US", "http://8.8.4.4:80"}},
		{
			name: "broken rows lose only themselves",
			text: "host,port,password,username\n8.8.8.1,80,\"open,x\n8.8.8.2,80,a\"b,u\n8.8.8.3,80,\"a\"b,u\n8.8.8.4,80\n8.8.8.5,x,,\n8.8.8.6,80,p,u\n",
			want: []string{"http://u:p@8.8.8.6:80"}, rejected: []string{"2: does not end", "3: inside a cell", "4: behind a quoted", "5: 2 cells", "6: not a number"},
		},
		{name: "a cell over two lines", text: "host,port,note\n8.8.8.1,80,\"two\nlines\"\n8.8.8.2,80,x\n", want: []string{"http://8.8.8.1:80", "http://8.8.8.2:80"}, ignored: 1},
		{name: "a # in the first cell", text: "# ours\npass,user,host,port\n#x,u,8.8.8.1,80\n# a comment\n#,,,\n", want: []string{"http://u:%23x@8.8.8.1:80"}, rejected: []string{"5: no host"}},
		{name: "cells are literal", text: "host,port,user,pass\n8.8.8.1,80,u%41, p%41\n", want: []string{"http://u%2541:%20p%2541@8.8.8.1:80"}},
		{name: "a flag named https", text: "proxy,https,region\n8.8.8.8:80,True,Japan\n", want: []string{"http://8.8.8.8:80 in Japan"}, ignored: 1},
		{name: "flags named after schemes are not understood", text: "ip,port,http,socks5\n8.8.8.8,80,0,1\n", rejected: []string{"1: cells", "2: cells"}},
		{name: "named as CSV without a header", text: "8.8.8.8,80\n8.8.8.9,80\n", opts: proxy.ListOptions{Format: proxy.FormatCSV}, rejected: []string{"1: header"}},
		{name: "columns that name nothing", text: "8.8.8.8,80\n", opts: proxy.ListOptions{Columns: []string{"a", "b"}}, rejected: []string{"1: columns"}},
		{name: "several schemes in a row", text: "ip,port,protocols\n8.8.8.8,80,\"http, https\"\n8.8.8.9,80,socks4/socks5\n8.8.8.1,80,vmess\n", want: []string{"http://8.8.8.8:80", "socks4://8.8.8.9:80", "socks5://8.8.8.9:80"}, rejected: []string{"4: vmess"}},
	}
}

func jsonCases() []listCase {
	return []listCase{
		{
			name: "the article's record", text: "{\n  \"host\": \"proxy.example.com\",\n  \"port\": 8000,\n  \"scheme\": \"http\",\n  \"region\": \"cn-east\",\n  \"expires_at\": 1790000000,\n  \"fail_count\": 0\n}\n",
			want: []string{"http://proxy.example.com:8000 in cn-east"}, ignored: 1,
		},
		{name: "an object with a list inside", text: `{"status":"ok","count":2,"data":[{"ip":"8.8.8.8","port":"80"},"8.8.4.4:81:u:p"],"next":null}`, want: []string{"http://8.8.8.8:80", "http://u:p@8.8.4.4:81"}},
		{name: "a list deep inside", text: `{"result":{"page":1,"proxies":[{"proxy":"socks5://u:p@8.8.8.8:80","ip":"8.8.8.8","port":80,"protocol":"socks5"}]}}`, want: []string{"socks5://u:p@8.8.8.8:80"}},
		{name: "proxies by id", text: `{"status":"yes","list":{"11":{"id":"11","host":"8.8.8.8","port":"80","user":"u","pass":"p","type":"http","country":"ru"},"12":{"host":"8.8.8.9","port":"80"}}}`, want: []string{"http://u:p@8.8.8.8:80 in ru", "http://8.8.8.9:80"}, ignored: 1},
		{name: "lists under schemes", text: "{\"http\":[\"8.8.8.8:80\"],\n\"socks5\":[\"8.8.8.9:80\",{\"ip\":\"8.8.8.1\",\"port\":1}]}", want: []string{"http://8.8.8.8:80", "socks5://8.8.8.9:80", "socks5://8.8.8.1:1"}},
		{name: "a list under a name that is not known", text: `{"dead":["8.8.8.8:80"],"proxies":["8.8.8.9:80"]}`, want: []string{"http://8.8.8.9:80"}, ignored: 1},
		{name: "nothing but unknown names", text: `{"alive":["8.8.8.8:80"],"dead":["8.8.8.9:80"]}`, rejected: []string{"1: known names"}},
		{name: "an empty list", text: `[]`},
		{
			name: "broken values lose only themselves",
			text: "[\n{\"host\":\"8.8.8.1\",\"port\":80},\n{\"host\":\"8.8.8.2,\"port\":80},\n{\"host\":\"8.8.8.3\",\"port\":80,\n{\"host\":\"8.8.8.4\",\"port\":[80},\n" +
				"{'host':'8.8.8.5'},\n7,\n[\"8.8.8.6\",80],\n{\"host\":\"8.8.8.7\",\"port\":80}]",
			want:     []string{"http://8.8.8.1:80", "http://8.8.8.7:80"},
			rejected: []string{"3: not JSON", "4: not JSON", "5: not JSON", "6: not JSON", "7: neither", "8: neither"},
		},
		{name: "cut off", text: `[{"host":"8.8.8.1","port":80},{"host":"8.8.8.2",`, want: []string{"http://8.8.8.1:80"}, rejected: []string{"1: in the middle"}},
		{name: "objects one behind the other, then lines", text: "{\n\"host\":\"8.8.8.1\",\n\"port\":80\n}\n{\n\"host\":\"8.8.8.2\",\n\"port\":80\n}\n8.8.8.3:80\nnonsense\n", want: []string{"http://8.8.8.1:80", "http://8.8.8.2:80", "http://8.8.8.3:80"}, rejected: []string{"10: no port"}},
		{name: "two values for one thing", text: `[{"ip":"8.8.8.1","host":"8.8.8.2","port":80},{"host":"8.8.8.1","host":"8.8.8.2","port":80},{"proxy":"u:p@8.8.8.1:80","port":81},{"url":"http://8.8.8.1:80","scheme":"socks5"},{"proxy":"u:p@8.8.8.1:80","user":"v"}]`, rejected: []string{"1: host", "1: host", "1: port", "1: scheme", "1: username"}},
		{name: "schemes in lists", text: `[{"ip":"8.8.8.1","port":80,"protocols":["http","https"]},{"ip":"8.8.8.2","port":80,"types":[{"type":"SOCKS4","level":"x"},{"type":"SOCKS5"}]},{"ip":"8.8.8.3","port":1,"socks5":true}]`, want: []string{"http://8.8.8.1:80", "socks4://8.8.8.2:80", "socks5://8.8.8.2:80"}, rejected: []string{"1: socks5"}, ignored: 1},
		{name: "a server's URL and numbers for texts", text: `[{"server":"http://gw.example:3128","username":12,"password":34}]`, want: []string{"http://12:34@gw.example:3128"}},
		{name: "control bytes in texts", text: `[{"host":"8.8.8.1","port":80,"region":"a\u001b[31m"},{"host":"8.8.8.1","port":80,"password":"a\u0000"},{"host":"8.8.8.1\u0007","port":80},"8.8.8.1:80\n8.8.8.2:80",{"host":"8.8.8.1","port":80,"labels":{"a":"b,c"}}]`, rejected: []string{"1: region", "1: credentials", "1: host", "1: control", "1: label"}},
		{name: "expiry", text: `[{"host":"8.8.8.1","port":80,"expires_at":"2030-01-01T00:00:00Z"},{"host":"8.8.8.1","port":80,"expires":1790000000123},{"host":"8.8.8.1","port":80,"expires":"01.02.2030"}]`, want: []string{"http://8.8.8.1:80"}, rejected: []string{"1: expiry", "1: expiry"}},
		{name: "an IPv6 host", text: `[{"host":"2001:4860:4860::8888","port":80},{"address":"[2001:4860:4860::8888]:81"}]`, want: []string{"http://[2001:4860:4860::8888]:80", "http://[2001:4860:4860::8888]:81"}},
		{name: "a template", text: `[{"host":"gw.example","port":80,"username":"u-{session}-{country}","password":"p"}]`, want: []string{"http://u-%7Bsession%7D-%7Bcountry%7D:p@gw.example:80"}},
		{name: "a value that is too long", text: `[{"host":"8.8.8.1","port":80,"x":"` + strings.Repeat("x", 70_000) + `"},{"host":"8.8.8.2","port":80}]`, want: []string{"http://8.8.8.2:80"}, rejected: []string{"1: 64 KiB"}},
		{name: "a list longer than what is looked at first", text: `{"data":[` + strings.Repeat(`"nonsense",`, 7000) + `"8.8.8.1:80"],"x":"y` + strings.Repeat("y", 70_000) + `","list":["8.8.8.2:80"]}`, want: []string{"http://8.8.8.1:80", "http://8.8.8.2:80"}, rejected: slices.Repeat([]string{"1: no port"}, 1000)},
		{name: "brackets without end", text: strings.Repeat("[", 100) + "\n8.8.8.1:80", rejected: []string{"1: brackets", "1: in the middle"}},
	}
}

func jsonlCases() []listCase {
	jsonl := proxy.ListOptions{Format: proxy.FormatJSONL}
	const text = "{\"host\":\"8.8.8.1\",\"port\":80,\"cap\":3,\"group\":\"g\",\"labels\":{\"a\":\"b\"}}\n\"8.8.8.3:80\"\n{\"host\":\"8.8.8.2\"\n\n{\"host\":\"8.8.8.4\",\"port\":80},\n"
	return []listCase{
		{name: "said", text: text + "8.8.8.5:80\n", opts: jsonl, want: []string{"http://8.8.8.1:80", "http://8.8.8.3:80", "http://8.8.8.4:80"}, rejected: []string{"3: not JSON", "6: neither"}},
		{name: "found", text: text + "8.8.8.5:80\n", want: []string{"http://8.8.8.1:80", "http://8.8.8.3:80", "http://8.8.8.4:80", "http://8.8.8.5:80"}, rejected: []string{"3: does not end"}},
		{name: "the first line is broken", text: "{\"host\":\"8.8.8.1,\"port\":80}\n{\"host\":\"8.8.8.2\",\"port\":80}\n", want: []string{"http://8.8.8.2:80"}, rejected: []string{"1: not JSON"}},
	}
}

func lineCases() []listCase {
	return []listCase{
		{name: "what stands behind", text: "8.8.8.1:80 US\n8.8.8.2:80\tDE-A-S\n8.8.8.3:80 => success\nu:p@8.8.8.4:80|FR\n8.8.8.5:80 # ours\n", want: []string{"http://8.8.8.1:80 in US", "http://8.8.8.2:80 in DE", "http://8.8.8.3:80", "http://u:p@8.8.8.4:80 in FR", "http://8.8.8.5:80"}, ignored: 1},
		{name: "separators in credentials", text: "8.8.8.1:80:u:a|b,c;d\nu:a,b@8.8.8.2:80\nhttp://u:a b@8.8.8.3:80\n8.8.8.4:80:u:p w\nu:a b@8.8.8.5:80\n", want: []string{"http://u:a%7Cb,c;d@8.8.8.1:80", "http://u:a,b@8.8.8.2:80", "http://u:a%20b@8.8.8.3:80"}, rejected: []string{"4: password", "5: white space"}},
		{name: "two on a line", text: "8.8.8.1:80 8.8.8.2:80\nhttp://8.8.8.1:80,socks5://8.8.8.2:80\nhttp://8.8.8.1:80,socks5://u:p@8.8.8.2:80\nhttp://x, http://u:p@8.8.8.1:80\n8.8.8.1:80,u:p@8.8.8.2:80\n", rejected: []string{"1: more than one", "2: more than one", "3: more than one", "4: cells", "5: more than one"}},
		{name: "cells", text: "8.8.8.1:80,US\n8.8.8.1;80\n", rejected: []string{"1: cells", "2: cells"}},
		{name: "prose with an address", text: "Write to: me@lists.example:443\n# 8.8.8.1:80\nhost:port\n", rejected: []string{"1: white space", "3: not a number"}},
		{name: "format=url", text: "http://u:p%40@8.8.8.1:80\nu:p@8.8.8.2:80\n8.8.8.3:80\n8.8.8.4:80:u:p\n", opts: proxy.ListOptions{Format: proxy.FormatURL}, want: []string{"http://u:p%40@8.8.8.1:80", "http://u:p@8.8.8.2:80", "http://8.8.8.3:80"}, rejected: []string{"4: more behind"}},
		{name: "the plausible host", text: "bob:8080:x@gw.example:80\nme@mail.example:pw:gw.example:80\n", want: []string{"http://bob:8080%3Ax@gw.example:80", "http://me%40mail.example:pw@gw.example:80"}},
		{name: "packed", text: "\x1f\x8b\x08\x00\x00", rejected: []string{"1: packed"}},
		{name: "a format that is not known", text: "8.8.8.8:80", opts: proxy.ListOptions{Format: "xml"}, rejected: []string{"1: xml"}},
		{name: "empty"},
	}
}

// TestForms says what each reader makes of its form.
func TestForms(t *testing.T) {
	for form, cases := range map[string][]listCase{"lines": lineCases(), "csv": csvCases(), "json": jsonCases(), "jsonl": jsonlCases()} {
		for _, c := range cases {
			t.Run(form+"/"+c.name, func(t *testing.T) { checkCase(t, &c) })
		}
	}
}

func TestRecordFields(t *testing.T) {
	const text = `{"host":"8.8.8.1","port":80,"cap":3,"group":"g","labels":{"a":"b","n":1},"exit":"rotating","expires_at":1790000000}`
	want := proxy.Entry{
		Line: 1, Proxy: proxy.Proxy{Scheme: "http", Host: "8.8.8.1", Port: 80}, Group: "g", Cap: 3, Exit: "rotating",
		Labels: map[string]string{"a": "b", "n": "1"}, ExpiresAt: time.Unix(1790000000, 0).UTC(),
	}
	for form, text := range map[string]string{
		"json": "[" + text + "]", "jsonl": text,
		"csv": "host,port,cap,group,labels,exit,expires_at\n8.8.8.1,80,3,g,\"a=b,n=1\",rotating,2026-09-21T14:13:20Z\n",
	} {
		l := proxy.ReadList(strings.NewReader(text), proxy.ListOptions{})
		got, ok := l.Next()
		if !ok {
			t.Fatalf("%s: %v", form, l.Rejected())
		}
		got.Line = 1
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", form, diff)
		}
	}
}

// A list whose stream breaks off must not give half a line as a proxy.
func TestBrokenStream(t *testing.T) {
	cut := errors.New("cut")
	for form, text := range map[string]string{
		"lines": "8.8.8.1:80\n8.8.8.2:80", "csv": "host,port\n8.8.8.1,80\n8.8.8.2,80", "json": `["8.8.8.1:80","8.8.8.2:80`, "jsonl": "\"8.8.8.1:80\"\n\"8.8.8.2:80\"",
	} {
		format := proxy.Format(form)
		l := proxy.ReadList(io.MultiReader(strings.NewReader(text), iotest.ErrReader(cut)), proxy.ListOptions{Format: format})
		n := 0
		for _, ok := l.Next(); ok; _, ok = l.Next() {
			n++
		}
		if n != 1 || !errors.Is(l.Err(), cut) {
			t.Errorf("%s: %d proxies, error %v", form, n, l.Err())
		}
	}
}

// endless is a list without end: what reads it must not gather it.
type endless struct {
	head, again string
	left        int
	rest        string
	heap        uint64 // in use when half was read
}

func (e *endless) Read(p []byte) (int, error) {
	if e.rest == "" {
		if e.rest, e.head = e.head, ""; e.rest == "" {
			e.rest = e.again
		}
	}
	if e.left -= len(p); e.left < 0 {
		return 0, io.EOF
	}
	if e.heap == 0 && e.left < 16<<20 {
		e.heap = heapInUse()
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestListsAreNotGathered(t *testing.T) {
	for name, text := range map[string][2]string{
		"a line": {"", "x"}, "a string": {`["`, "x"}, "an object": {"[{", `"a":"b",`}, "a root object": {"{", `"a":"b",`}, "a cell": {"host,port\n\"", "x\n"},
		"bad lines": {"", "x\n"}, "deep": {"", "[{\"a\":"}, "an array": {"[", "7,"}, "blank rows": {"host,port\n", ",\n"},
	} {
		before := heapInUse()
		in := &endless{head: text[0], again: text[1], left: 32 << 20}
		l := proxy.ReadList(in, proxy.ListOptions{})
		if e, ok := l.Next(); ok {
			t.Errorf("%s: gave %s", name, e.Proxy)
		}
		if in.heap > before+4<<20 {
			t.Errorf("%s: holds %d KiB half way", name, (in.heap-before)>>10)
		}
		if len(l.Rejected()) > 1000 || len(l.Ignored()) > 100 {
			t.Errorf("%s: keeps %d and %d", name, len(l.Rejected()), len(l.Ignored()))
		}
	}
}
