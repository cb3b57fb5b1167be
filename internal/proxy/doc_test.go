package proxy_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hostler-proxy/hostler/internal/proxy"
)

// block is a fenced block of a document.
type block struct{ kind, args, text string }

func blocks(doc string) (list []block) {
	for rest := doc; ; {
		_, after, ok := strings.Cut(rest, "\n```")
		if !ok {
			return list
		}
		head, body, _ := strings.Cut(after, "\n")
		text, after, _ := strings.Cut(body, "```\n")
		kind, args, _ := strings.Cut(head, " ")
		list, rest = append(list, block{kind, args, text}), "\n"+after
	}
}

// TestListsPage reads every example of docs/lists.md and wants what stands there.
func TestListsPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/lists.md")
	if err != nil {
		t.Fatal(err)
	}
	list := blocks(string(page))
	if len(list) < 20 || len(list)%2 != 0 {
		t.Fatalf("%d blocks", len(list))
	}
	for i := 0; i < len(list); i += 2 {
		if list[i].kind != "list" || list[i+1].kind != "becomes" {
			t.Fatalf("block %d: %s and %s", i, list[i].kind, list[i+1].kind)
		}
		if diff := cmp.Diff(list[i+1].text, becomes(list[i].args, list[i].text)); diff != "" {
			t.Errorf("the page (-) and what the list becomes (+):\n%s\n%s", list[i].text, diff)
		}
	}
}

// becomes writes what a list becomes, as the page does.
func becomes(args, text string) string {
	var opts proxy.ListOptions
	switch name, value, _ := strings.Cut(args, "="); name {
	case "format":
		opts.Format = proxy.Format(value)
	case "columns":
		opts.Columns = strings.Split(value, ",")
	}
	l := proxy.ReadList(strings.NewReader(text), opts)
	var b strings.Builder
	for e, ok := l.Next(); ok; e, ok = l.Next() {
		b.WriteString(e.Proxy.URL().String())
		said := func(name, value string) {
			if value != "" {
				b.WriteString(" " + name + "=" + value)
			}
		}
		said("region", e.Region)
		var labels []string
		for _, key := range slices.Sorted(maps.Keys(e.Labels)) {
			labels = append(labels, key+"="+e.Labels[key])
		}
		said("labels", strings.Join(labels, ","))
		said("exit", e.Exit)
		if e.Cap > 0 {
			said("cap", fmt.Sprint(e.Cap))
		}
		if !e.ExpiresAt.IsZero() {
			said("expires", e.ExpiresAt.Format(time.RFC3339))
		}
		b.WriteByte('\n')
	}
	for _, r := range l.Rejected() {
		fmt.Fprintf(&b, "line %d rejected: %s\n", r.Line, r.Reason)
	}
	for _, r := range l.Ignored() {
		fmt.Fprintf(&b, "line %d ignored: %s\n", r.Line, r.Reason)
	}
	return b.String()
}
