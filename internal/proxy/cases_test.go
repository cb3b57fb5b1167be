package proxy_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/hostler-proxy/hostler/internal/proxy"
)

// listCase is a list that people have met, and what must become of it.
type listCase struct {
	name string
	text string
	opts proxy.ListOptions
	// want is each accepted proxy as its URL, with " in REGION" if it has one.
	want []string
	// rejected is each rejected line as "N: part of the reason".
	rejected []string
	ignored  int
}

// special takes documentation addresses, which the cases are written with.
var special = proxy.ListOptions{AllowSpecial: true}

func withFormat(f proxy.Format) proxy.ListOptions {
	return proxy.ListOptions{AllowSpecial: true, Format: f}
}

func wide(order binary.AppendByteOrder, text string) string {
	var out []byte
	for _, unit := range utf16.Encode([]rune("\ufeff" + text)) {
		out = order.AppendUint16(out, unit)
	}
	return string(out)
}

// a23 is a good list with bad lines between.
func a23() (text string, want, rejected []string) {
	bad := []string{"127:0:0:1:80", "203.0.339.0:80", ".:80", "host:0", "host:65536", "host:8o80", "host:"}
	reasons := []string{"brackets", "IPv4", "IPv4", "out of range", "out of range", "not a number", "no port"}
	var b strings.Builder
	for i, line := 0, 0; i < 1000; i++ {
		if i%150 == 7 {
			k := i / 150
			line++
			fmt.Fprintln(&b, bad[k])
			rejected = append(rejected, fmt.Sprintf("%d: %s", line, reasons[k]))
		}
		line++
		fmt.Fprintf(&b, "203.0.113.%d:%d\n", i%256, 1000+i)
		want = append(want, fmt.Sprintf("http://203.0.113.%d:%d", i%256, 1000+i))
	}
	return b.String(), want, rejected
}

func listCases() []listCase {
	mixed, good, bad := a23()
	return []listCase{
		{
			name: "A01 a title, donation lines and flags",
			text: "Proxy list (#400) updated at Tue, 01 Dec\nMirrors=http://lists.example\nBTC 1AbcDefGhi\nIP address:Port CountryCode-Anonymity(Noa/Anm/Hia)-SSL_support(S)\n\n" +
				"203.0.113.7:999 CO-N-S! + \n\r\nThe end of the list",
			opts: special, want: []string{"http://203.0.113.7:999 in CO"}, ignored: 1,
			rejected: []string{"1: not a proxy", "2: not supported", "3: not a proxy", "4: not a proxy", "8: not a proxy"},
		},
		{name: "A02 flags without a country", text: "203.0.113.8:8080 -N-S + \n", opts: special, want: []string{"http://203.0.113.8:8080"}, ignored: 1},
		{
			name: "A03 an error page",
			text: "<html><head><title>404 Not Found</title></head>\n<address>Apache/2.4.25 (Debian) Server at lists.example Port 80</address>\n203.0.113.9:80\n",
			opts: special, rejected: []string{"1: page"},
		},
		{
			name: "A06 places behind pipes", text: "203.0.113.13:8080|?|?|?\n203.0.113.14:8080|Georgia|K'alak'i T'bilisi|Tbilisi\n203.0.113.15:8080|Turkey|Hatay|İskenderun\n203.0.113.16:8080|bob|pw\n",
			opts: special, rejected: []string{"4: country, region and city"},
			want: []string{"http://203.0.113.13:8080", "http://203.0.113.14:8080 in Georgia", "http://203.0.113.15:8080 in Turkey"},
		},
		{
			name: "A07 one address under three schemes, no final line end", text: "http://203.0.113.16:1080\nsocks4://203.0.113.16:1080\nsocks5://203.0.113.16:1080",
			opts: special, want: []string{"http://203.0.113.16:1080", "socks4://203.0.113.16:1080", "socks5://203.0.113.16:1080"},
		},
		{
			name: "A08 null credentials and a deep tail",
			text: `[{"protocol":"http","username":null,"password":null,"host":"203.0.113.17","port":7080,"timeout":0.18,"exit_ip":"198.51.100.9","asn":{"number":1,"name":"}{"},"geolocation":{"country":{"iso_code":"DE"}}}]`,
			opts: special, want: []string{"http://203.0.113.17:7080"}, ignored: 4,
		},
		{
			name: "A10 a column for each scheme, without names", text: "203.0.113.19:5678,,,\n,,203.0.113.20:8080,203.0.113.20:8080\n",
			opts: special, rejected: []string{"1: header", "2: header"},
		},
		{
			name: "A10 a column for each scheme, named in the header", text: "http,https,socks4,socks5,country\n203.0.113.19:5678,,,,DE\n,,203.0.113.20:8080,203.0.113.20:8080,\n",
			opts: special, want: []string{"http://203.0.113.19:5678 in DE", "socks4://203.0.113.20:8080", "socks5://203.0.113.20:8080"},
		},
		{
			name: "A10 a column for each scheme, named in the call", text: "203.0.113.19:5678,,,\n,,203.0.113.20:8080,203.0.113.20:8080\n,,,\n",
			opts: proxy.ListOptions{AllowSpecial: true, Columns: []string{"http", "https", "socks4", "socks5"}},
			want: []string{"http://203.0.113.19:5678", "socks4://203.0.113.20:8080", "socks5://203.0.113.20:8080"},
		},
		{
			name: "A12 host:port:user:pass with colons in the password", text: "203.0.113.22:6511:bob:pa:ss:word\nhttp://203.0.113.22:6511:bob:pw\n203.0.113.22:6511:bob:1234\n203.0.113.22:6511:bob:p@ss\n",
			opts: special, want: []string{"http://bob:pa%3Ass%3Aword@203.0.113.22:6511", "http://bob:pw@203.0.113.22:6511", "http://bob:1234@203.0.113.22:6511", "http://bob:p%40ss@203.0.113.22:6511"},
		},
		{
			name: "A13 user:pass:host:port and names full of dashes",
			text: "acct-c1-zone-static:pw9:gw.example:22225\ngw.example:7777:customer-u1-country-EU-sessid-ab12:pw\nh1:8080:h2:9090\nh.example:8080:u.example:9090\n",
			opts: special, rejected: []string{"3: ambiguous", "4: ambiguous"},
			want: []string{"http://acct-c1-zone-static:pw9@gw.example:22225", "http://customer-u1-country-EU-sessid-ab12:pw@gw.example:7777"},
		},
		{
			name: "A13 the format settles what is ambiguous", text: "h1:8080:h2:9090\n203.0.113.1:80:u:p w\n",
			opts: withFormat(proxy.FormatHostPort), want: []string{"http://h2:9090@h1:8080", "http://u:p%20w@203.0.113.1:80"},
		},
		{
			name: "A13 the other format", text: "h1:8080:h2:9090\ngw.example:80\n",
			opts: withFormat(proxy.FormatUserPass), want: []string{"http://h1:8080@h2:9090"}, rejected: []string{"2: no port"},
		},
		{
			name: "A15 IPv6", text: "[2001:db8::1]:8080\nsocks5h://u:p@[2001:db8::1]:1080\nu:p:[2001:db8::2]:8080\n2001:db8::1:1080\nhttp://[2001:db8::1]\n",
			opts: special, want: []string{"http://[2001:db8::1]:8080", "socks5://u:p@[2001:db8::1]:1080", "http://u:p@[2001:db8::2]:8080"},
			rejected: []string{"4: brackets", "5: no port"},
		},
		{
			name: "A16 @, # and / in the password of a URL", text: "http://bob:p@ss@gw.example:8080\nhttp://bob:pw#1@gw.example:8080\nhttp://bob:a/b?c@gw.example:8080\nhttp://gw.example:8080#priority=100\nhttp://gw.example:8080/path\n",
			opts: special, rejected: []string{"5: not a number"},
			want: []string{"http://bob:p%40ss@gw.example:8080", "http://bob:pw%231@gw.example:8080", "http://bob:a%2Fb%3Fc@gw.example:8080", "http://gw.example:8080"},
		},
		{
			name: "A17 percent escapes are decoded once and in URLs only", text: "http://bob:p%40ss@gw.example:80\nhttp://bob:a6%6qgx@gw.example:80\nbob:p%40ss@gw.example:81\ngw.example:82:bob:p%40ss\nhttp://bob:%2540@gw.example:83\nhttp://bob:%0a@gw.example:84\nhttp://bob:%ff@gw.example:85\n",
			opts: special, rejected: []string{"6: control", "7: UTF-8"},
			want: []string{
				"http://bob:p%40ss@gw.example:80", "http://bob:a6%256qgx@gw.example:80", "http://bob:p%2540ss@gw.example:81",
				"http://bob:p%2540ss@gw.example:82", "http://bob:%2540@gw.example:83",
			},
		},
		{
			name: "A19 one address, another password", text: "gw.example:12321:u:session-a\ngw.example:12321:u:session-b\n",
			opts: special, want: []string{"http://u:session-a@gw.example:12321", "http://u:session-b@gw.example:12321"},
		},
		{
			name: "A20 special-purpose addresses", text: "0.0.0.0:80\n127.0.0.7:80\n10.1.2.3:3128\n169.254.169.254:80\n255.255.255.255:1\n[::1]:80\n[::ffff:10.0.0.1]:80\nlocalhost:80\n[64:ff9b::a00:1]:80\n[2002:a00:1::]:80\n0x7f.1:80\n127.1:80\n8.8.8.8:53\n",
			want: []string{"http://8.8.8.8:53"},
			rejected: []string{
				"1: special-purpose address", "2: special-purpose address", "3: special-purpose address", "4: special-purpose address",
				"5: special-purpose address", "6: special-purpose address", "7: special-purpose address", "8: special-purpose address",
				"9: special-purpose address", "10: special-purpose address", "11: IPv4", "12: IPv4",
			},
		},
		{
			name: "A20 special-purpose addresses that are allowed", text: "127.0.0.7:80\n10.1.2.3:3128\n[::1]:80\n",
			opts: special, want: []string{"http://127.0.0.7:80", "http://10.1.2.3:3128", "http://[::1]:80"},
		},
		{name: "A22 a last octet of 0", text: "203.0.113.0:999\n203.0.113.255:999\n", opts: special, want: []string{"http://203.0.113.0:999", "http://203.0.113.255:999"}},
		{name: "A23 broken lines lose only themselves", text: mixed, opts: special, want: good, rejected: bad},
		{
			name: "A25 https means TLS to the proxy, unless it is mapped", text: "https://203.0.113.31:3128\n", opts: special, want: []string{"https://203.0.113.31:3128"},
		},
		{
			name: "A25 https mapped", text: "https://203.0.113.31:3128\n",
			opts: proxy.ListOptions{AllowSpecial: true, MapScheme: map[proxy.Scheme]proxy.Scheme{"https": "http"}}, want: []string{"http://203.0.113.31:3128"},
		},
		{
			name: "A26 byte order mark and CR", text: "\xef\xbb\xbf203.0.113.32:8080\r\n203.0.113.33:8080:u:pw\r\n",
			opts: special, want: []string{"http://203.0.113.32:8080", "http://u:pw@203.0.113.33:8080"},
		},
		{
			name: "A26 the same as JSON", text: "\xef\xbb\xbf[\r\n{\"host\":\"203.0.113.32\",\"port\":8080},\r\n{\"host\":\"203.0.113.33\",\"port\":8080,\"user\":\"u\",\"pass\":\"pw\"}\r\n]\r\n",
			opts: special, want: []string{"http://203.0.113.32:8080", "http://u:pw@203.0.113.33:8080"},
		},
		{
			name: "A26 the same as CSV", text: "\xef\xbb\xbfhost,port,user,pass\r\n203.0.113.32,8080,,\r\n203.0.113.33,8080,u,pw\r\n",
			opts: special, want: []string{"http://203.0.113.32:8080", "http://u:pw@203.0.113.33:8080"},
		},
		{
			name: "A26 UTF-16, low byte first", text: wide(binary.LittleEndian, "203.0.113.32:8080\r\n203.0.113.33:8080:u:pä\U0001F511\r\n"),
			opts: special, want: []string{"http://203.0.113.32:8080", "http://u:p%C3%A4%F0%9F%94%91@203.0.113.33:8080"},
		},
		{
			name: "A26 UTF-16, high byte first, as CSV", text: wide(binary.BigEndian, "host;port;user;pass\r\n203.0.113.33;8080;u;pw\r\n"),
			opts: special, want: []string{"http://u:pw@203.0.113.33:8080"},
		},
		{
			name: "A26 UTF-16 without a mark, and broken", text: wide(binary.LittleEndian, "203.0.113.32:80\n")[2:] + "\x00\xd8\n\x002\x000\x00",
			opts: special, want: []string{"http://203.0.113.32:80"}, rejected: []string{"2: UTF-8", "3: no port"},
		},
		{
			name: "A28 other names of schemes", text: "socks5h://203.0.113.34:1080\nSOCKS5://203.0.113.35:1080\nsocks://203.0.113.36:1080\nquic://203.0.113.37:1080\naws://KEY:SECRET@region\n",
			opts: special, want: []string{"socks5://203.0.113.34:1080", "socks5://203.0.113.35:1080", "socks5://203.0.113.36:1080"},
			rejected: []string{`4: scheme "quic" is not supported`, `5: scheme "aws"`},
		},
	}
}

// outcome is what became of a list, in the words of a listCase.
func outcome(c *listCase) (want, rejected []string, l *proxy.List) {
	l = proxy.ReadList(strings.NewReader(c.text), c.opts)
	for e, ok := l.Next(); ok; e, ok = l.Next() {
		text := e.Proxy.URL().String()
		if e.Region != "" {
			text += " in " + e.Region
		}
		want = append(want, text)
	}
	for _, r := range l.Rejected() {
		rejected = append(rejected, fmt.Sprintf("%d: %s", r.Line, r.Reason))
	}
	return want, rejected, l
}

func checkCase(t *testing.T, c *listCase) {
	t.Helper()
	got, rejected, l := outcome(c)
	if diff := cmp.Diff(c.want, got); diff != "" {
		t.Errorf("accepted (-want +got):\n%s", diff)
	}
	if len(rejected) != len(c.rejected) {
		t.Fatalf("rejected %d, want %d:\n%s", len(rejected), len(c.rejected), strings.Join(rejected, "\n"))
	}
	for i, want := range c.rejected {
		line, part, _ := strings.Cut(want, ": ")
		if !strings.HasPrefix(rejected[i], line+": ") || !strings.Contains(rejected[i], part) {
			t.Errorf("rejected %q, want %q", rejected[i], want)
		}
	}
	if len(l.Ignored()) != c.ignored {
		t.Errorf("left aside %v, want %d", l.Ignored(), c.ignored)
	}
	if l.Err() != nil {
		t.Error(l.Err())
	}
}

// TestCases replays the lists that people have met: each is a kind of its own.
func TestCases(t *testing.T) {
	for _, c := range listCases() {
		t.Run(c.name, func(t *testing.T) { checkCase(t, &c) })
	}
}
