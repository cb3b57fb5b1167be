package proxy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/hostler-proxy/hostler/internal/proxy"
)

// marker is a password that no reason may quote.
const marker = "S3cr3t-MARK"

// seeds are the lists of the cases and forms, and odd words.
func seeds(f *testing.F) {
	f.Helper()
	for _, cases := range [][]listCase{listCases(), lineCases(), csvCases(), jsonCases(), jsonlCases()} {
		for _, c := range cases {
			if len(c.text) < 2000 {
				f.Add(c.text)
			}
		}
	}
	for _, s := range []string{
		"8.8.8.8:80", "h:80:u:S3cr3t-MARK", "u:S3cr3t-MARK@h:80", "http://u:S3cr3t-MARK@[::1]:80", "http://u:%zz@h:1", "h1:8080:h2:9090",
		"2001:db8::1:1080", "socks5h://h:1", "[::", "@", ":::::", "http://", "u:p:[::1]:80", `{"host":"h","port":1}`, `{"port":1e99}`, "#", "\xef\xbb\xbfh:1",
		"host,port,password\nh,1,S3cr3t-MARK\n", `[{"host":"h","port":1,"password":"S3cr3t-MARK"}]`, `{"data":[{"host":"h","password":"S3cr3t-MARK"`,
		"\xff\xfeh\x00:\x001\x00\n\x00", "S3cr3t-MARK://h:1", "h:S3cr3t-MARK", "u:1234567:h:80x",
	} {
		f.Add(s)
	}
}

func FuzzParse(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, line string) {
		p, err := proxy.Parse(line, "http")
		if err != nil {
			if strings.Contains(err.Error(), marker) {
				t.Fatalf("the reason quotes credentials: %v", err)
			}
			return
		}
		if err := p.Validate(); err != nil {
			t.Fatalf("accepted %q: %v", line, err)
		}
		if strings.ContainsAny(p.Host, "@/ \x00") {
			t.Fatalf("host %q", p.Host)
		}
		back, err := proxy.Parse(p.URL().String(), "http")
		if err != nil || back.Canonical() != p.Canonical() {
			t.Fatalf("%q: %#v became %#v: %v", line, p, back, err)
		}
	})
}

// readAll reads a list and checks what must hold of every list.
func readAll(t *testing.T, text string, format proxy.Format) (list []proxy.Entry) {
	t.Helper()
	l := proxy.ReadList(strings.NewReader(text), proxy.ListOptions{Format: format})
	for e, ok := l.Next(); ok; e, ok = l.Next() {
		if err := e.Proxy.Validate(); err != nil {
			t.Fatal(err)
		}
		if e.Proxy.Special() != "" {
			t.Fatalf("a special address was taken: %s", e.Proxy)
		}
		if e.Line < 1 || e.Line > strings.Count(text, "\n")+1 {
			t.Fatalf("line %d", e.Line)
		}
		list = append(list, e)
	}
	if n := len(list) + l.RejectedCount(); n > len(text)+1 {
		t.Fatalf("%d entries in %d bytes", n, len(text))
	}
	for _, r := range slices.Concat(l.Rejected(), l.Ignored()) {
		if strings.ContainsFunc(r.Reason, func(c rune) bool { return c < 0x20 || c >= 0x7f && c < 0xa0 }) || len(r.Reason) > 300 {
			t.Fatalf("reason %q", r.Reason)
		}
	}
	for _, r := range l.Rejected() {
		if strings.Contains(r.Reason, marker) || r.Line < 1 || r.Line > strings.Count(text, "\n")+2 {
			t.Fatalf("line %d: reason %q", r.Line, r.Reason)
		}
	}
	return list
}

// fuzzReader feeds one reader: what it accepts does not depend on how the text
// comes in, and is accepted again when it is written and read.
func fuzzReader(f *testing.F, format proxy.Format) {
	f.Helper()
	seeds(f)
	f.Fuzz(func(t *testing.T, text string) {
		list := readAll(t, text, format)
		l := proxy.ReadList(iotest.OneByteReader(strings.NewReader(text)), proxy.ListOptions{Format: format})
		for i, want := range list {
			if e, ok := l.Next(); !ok || fmt.Sprintf("%#v", e) != fmt.Sprintf("%#v", want) {
				t.Fatalf("byte by byte entry %d is %#v, not %#v", i, e, want)
			}
		}
		for _, out := range writable {
			again := readAll(t, write(t, out, true, list), proxy.FormatAuto)
			if len(again) != len(list) {
				t.Fatalf("%s: wrote %d, read %d", out, len(list), len(again))
			}
			for i, e := range again {
				if e.Proxy.Canonical() != list[i].Proxy.Canonical() {
					t.Fatalf("%s: %#v became %#v", out, list[i].Proxy, e.Proxy)
				}
			}
		}
	})
}

func FuzzReadList(f *testing.F)  { fuzzReader(f, proxy.FormatAuto) }
func FuzzReadLines(f *testing.F) { fuzzReader(f, proxy.FormatLines) }
func FuzzReadCSV(f *testing.F)   { fuzzReader(f, proxy.FormatCSV) }
func FuzzReadJSON(f *testing.F)  { fuzzReader(f, proxy.FormatJSON) }
func FuzzReadJSONL(f *testing.F) { fuzzReader(f, proxy.FormatJSONL) }

func benchmarkList(b *testing.B, line func(i int) string) {
	b.Helper()
	var list strings.Builder
	for i := range 10_000 {
		list.WriteString(line(i) + "\n")
	}
	text := list.String()
	b.ReportAllocs()
	for b.Loop() {
		l := proxy.ReadList(strings.NewReader(text), proxy.ListOptions{})
		n := 0
		for _, ok := l.Next(); ok; _, ok = l.Next() {
			n++
		}
		if n < 9_999 {
			b.Fatal(n, l.Rejected()[0])
		}
	}
	b.ReportMetric(float64(b.N)*10_000/b.Elapsed().Seconds(), "lines/s")
}

func BenchmarkReadLines(b *testing.B) {
	benchmarkList(b, func(i int) string { return fmt.Sprintf("8.8.%d.%d:8080:user%d:pass%d", i>>8&255, i&255, i, i) })
}

func BenchmarkReadURLs(b *testing.B) {
	benchmarkList(b, func(i int) string { return fmt.Sprintf("socks5://user%d:pa%%40ss%d@gw.example.com:8080", i, i) })
}

func BenchmarkReadCSV(b *testing.B) {
	benchmarkList(b, func(i int) string {
		if i == 0 {
			return "ip,port,username,password,country"
		}
		return fmt.Sprintf("8.8.%d.%d,8080,user%d,pass%d,DE", i>>8&255, i&255, i, i)
	})
}

func BenchmarkReadJSONL(b *testing.B) {
	benchmarkList(b, func(i int) string {
		return fmt.Sprintf(`{"host":"8.8.%d.%d","port":8080,"username":"user%d","password":"pass%d","country":"DE"}`, i>>8&255, i&255, i, i)
	})
}

func BenchmarkReadJSON(b *testing.B) {
	benchmarkList(b, func(i int) string {
		return fmt.Sprintf("%c{\"host\":\"8.8.%d.%d\",\"port\":8080,\"username\":\"user%d\",\"password\":\"pass%d\",\"country\":\"DE\"}", "[,"[min(i, 1)], i>>8&255, i&255, i, i)
	})
}
