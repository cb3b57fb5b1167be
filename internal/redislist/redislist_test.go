package redislist_test

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/rueidis"

	"github.com/hostler-proxy/hostler/internal/proxy"
	"github.com/hostler-proxy/hostler/internal/redislist"
	"github.com/hostler-proxy/hostler/internal/redistest"
)

// fill runs commands; each is a list of words.
func fill(t *testing.T, address string, commands ...[]string) {
	t.Helper()
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{address}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, words := range commands {
		if err := c.Do(t.Context(), c.B().Arbitrary(words...).Build()).Error(); err != nil {
			t.Fatalf("%s: %v", words[0], err)
		}
	}
}

// read gives the proxies that a key holds, sorted, and why others are refused.
func read(t *testing.T, url, key string) (got []string, rejected []proxy.Rejection) {
	t.Helper()
	s, err := redislist.Open(t.Context(), url, "", key)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var list strings.Builder
	if err := s.Copy(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	l := proxy.ReadList(strings.NewReader(list.String()), proxy.ListOptions{Format: proxy.Format(s.Format()), AllowSpecial: true})
	for e, ok := l.Next(); ok; e, ok = l.Next() {
		got = append(got, e.Proxy.URL().String())
	}
	slices.Sort(got)
	return slices.Compact(got), l.Rejected()
}

func TestTakesOverEachType(t *testing.T) {
	address := redistest.Start(t)
	record := "{\n\"host\": \"proxy.example.com\", \"port\": 8000, \"scheme\": \"socks5\", \"fail_count\": 0}"
	fill(
		t, address,
		[]string{"RPUSH", "proxy:ready", "gw.example:80:u:p", record, "http://u:p%40@gw.example:81", "nonsense", "a\x00\x1b[31m:80"},
		[]string{"SADD", "a set", "gw.example:1", "gw.example:2"},
		[]string{"ZADD", "scores", "100", "gw.example:1", "3", "u:p@gw.example:2"},
		[]string{"HSET", "by field", "gw.example:1", `{"score": 3}`, "gw.example:2", "9"},
		[]string{"HSET", "by id", "1", "gw.example:1", "2", record},
		[]string{"HSET", "both", "gw.example:1", `{"proxy": "gw.example:1", "https": true}`, "gw.example:2", "other.example:2"},
		[]string{"SET", "text", "gw.example:1\ngw.example:2\n"},
	)
	for key, c := range map[string]struct {
		want     []string
		rejected int
	}{
		"proxy:ready": {[]string{"http://u:p%40@gw.example:81", "http://u:p@gw.example:80", "socks5://proxy.example.com:8000"}, 2},
		"a set":       {[]string{"http://gw.example:1", "http://gw.example:2"}, 0},
		"scores":      {[]string{"http://gw.example:1", "http://u:p@gw.example:2"}, 0},
		"by field":    {[]string{"http://gw.example:1", "http://gw.example:2"}, 0},
		"by id":       {[]string{"http://gw.example:1", "socks5://proxy.example.com:8000"}, 0},
		"both":        {[]string{"http://gw.example:1"}, 1},
		"text":        {[]string{"http://gw.example:1", "http://gw.example:2"}, 0},
	} {
		got, rejected := read(t, "redis://"+address, key)
		if diff := cmp.Diff(c.want, got); diff != "" || len(rejected) != c.rejected {
			t.Errorf("%s: rejected %v, %s", key, rejected, diff)
		}
	}
}

// More elements than one piece, and an untouched key afterwards.
func TestReadsInPiecesAndOnlyReads(t *testing.T) {
	address := redistest.Start(t)
	var text strings.Builder
	for _, kind := range []string{"RPUSH", "SADD", "ZADD", "HSET"} {
		words := []string{kind, kind}
		for i := range 5000 {
			switch p := fmt.Sprintf("gw.example:%d", i+1); kind {
			case "ZADD":
				words = append(words, "1", p)
			case "HSET":
				words = append(words, p, "1")
			default:
				words = append(words, p)
			}
		}
		fill(t, address, words)
	}
	for i := range 40_000 {
		fmt.Fprintf(&text, "gw.example:%d\n", i+1)
	}
	fill(t, address, []string{"SET", "SET", text.String()}, []string{"CONFIG", "RESETSTAT"})
	for key, want := range map[string]int{"RPUSH": 5000, "SADD": 5000, "ZADD": 5000, "HSET": 5000, "SET": 40_000} {
		if got, rejected := read(t, "redis://"+address+"/0", key); len(got) != want || len(rejected) > 0 {
			t.Errorf("%s: %d proxies, %v", key, len(got), rejected)
		}
	}
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{address}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	stats, err := c.Do(t.Context(), c.B().Info().Section("commandstats").Build()).ToString()
	if err != nil {
		t.Fatal(err)
	}
	known := []string{"type", "lrange", "sscan", "zscan", "hscan", "getrange", "hello", "client|setinfo", "cluster|slots", "cluster|shards", "cluster|nodes", "info", "ping", "config|resetstat", "client|setname"}
	for line := range strings.SplitSeq(stats, "\r\n") {
		if name, ok := strings.CutPrefix(line, "cmdstat_"); ok {
			if name, _, _ = strings.Cut(name, ":"); !slices.Contains(known, name) {
				t.Errorf("a command that is not for reading: %s", name)
			}
		}
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	const secret = "S3cr3t-MARK"
	address := redistest.Start(t, "--requirepass", secret)
	for name, c := range map[string]struct{ url, password, key, want string }{
		"no URL":          {"redis://u:" + secret + "@[::1", "", "k", "must look like"},
		"wrong scheme":    {"http://u:" + secret + "@h:1", "", "k", "must look like"},
		"nobody there":    {"redis://u:" + secret + "@" + unused(t), "", "k", "refused"},
		"wrong password":  {"redis://:" + secret + "x@" + address, "", "k", "WRONGPASS"},
		"no password":     {"redis://" + address, "", "k", "NOAUTH"},
		"nothing there":   {"redis://:" + secret + "@" + address, "", "k", "holds nothing"},
		"password beside": {"redis://" + address, secret, "k", "holds nothing"},
	} {
		s, err := redislist.Open(t.Context(), c.url, c.password, c.key)
		if err == nil {
			s.Close()
			t.Errorf("%s: no error", name)
		} else if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	fillAs := "redis://:" + secret + "@" + address
	option, err := rueidis.ParseURL(fillAs)
	if err != nil {
		t.Fatal(err)
	}
	option.DisableCache = true
	c, err := rueidis.NewClient(option)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Do(t.Context(), c.B().Arbitrary("XADD", "log", "*", "a", "b").Build()).Error(); err != nil {
		t.Fatal(err)
	}
	if _, err := redislist.Open(t.Context(), fillAs, "", "log"); err == nil || !strings.Contains(err.Error(), "is a stream") {
		t.Errorf("a stream: %v", err)
	}
}

// unused is an address where nobody listens.
func unused(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}
