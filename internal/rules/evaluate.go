package rules

import (
	"net/textproto"
	"slices"
	"strings"
)

// Bounds of what is looked at.
const (
	// Head is where Contains looks, and MaxText counts.
	Head = 16 << 10
	// Whole is how much of a body MustContain and MustNotContain look at.
	Whole = 1 << 20
)

// Response is an answer as rules see it.
type Response struct {
	Status int
	// Header holds canonical names, as net/http has them.
	Header map[string][]string
	// Body is the body, or the beginning of it, after the content encoding was
	// taken off. 16 KiB are enough for rules without demands.
	Body []byte
	// Size is the length of the whole body; -1 = not known.
	Size int64
	// RedirectHost is the host that the answer redirects to, or that redirects
	// were followed to; "" = none. A port is passed over.
	RedirectHost string
}

// complete says whether Body is all of it.
func (r *Response) complete() bool { return r.Size >= 0 && int64(len(r.Body)) >= r.Size }

// Evaluate says which rules hit. Its time is linear in the body and the rules. A
// demand that cannot be checked, because only the beginning of the body is
// there, is taken as met: a doubt never blames.
func (s *Set) Evaluate(r *Response) Result {
	return s.evaluate(r, func(*When) bool { return true })
}

// EvaluateFacts evaluates only the rules that need no header and no body, but
// status, redirect host and size: what every report tells.
func (s *Set) EvaluateFacts(status int, redirectHost string, size int64) Result {
	return s.evaluate(&Response{Status: status, RedirectHost: redirectHost, Size: size}, (*When).needsFactsOnly)
}

func (w *When) needsFactsOnly() bool {
	return w.Header == nil && w.Contains == nil && w.MaxText == 0 && w.MustContain == nil && w.MustNotContain == nil
}

func (s *Set) evaluate(r *Response, take func(*When) bool) Result {
	if s == nil {
		return Result{}
	}
	head := content{bytes: r.Body[:min(len(r.Body), Head)]}
	whole := content{bytes: r.Body[:min(len(r.Body), Whole)]}
	var hits []int
	for i := range s.rules {
		w := &s.rules[i].When
		if take(w) && s.made[i].hold(w, r, &head) && s.made[i].broken(w, r, &whole) {
			hits = append(hits, i)
		}
	}
	return s.decide(hits)
}

// hold says whether all conditions of a rule hold, the cheap ones first.
func (c *compiled) hold(w *When, r *Response, head *content) bool {
	switch {
	case len(w.Status) > 0 && !slices.Contains(w.Status, r.Status):
		return false
	case w.RedirectHost != "" && !below(r.RedirectHost, w.RedirectHost):
		return false
	case w.MaxBytes > 0 && (r.Size < 0 || r.Size > w.MaxBytes):
		return false
	case w.Header != nil && !c.headerHolds(w.Header.Name, r.Header):
		return false
	case c.contains != nil && !c.contains.in(head):
		return false
	case w.MaxText > 0 && (!r.complete() || r.Size > Head || VisibleText(head.bytes, w.MaxText+1) > w.MaxText):
		return false
	}
	return true
}

func (c *compiled) headerHolds(name string, header map[string][]string) bool {
	values := header[textproto.CanonicalMIMEHeaderKey(name)]
	return slices.ContainsFunc(values, func(v string) bool { return c.header == nil || c.header.in(&content{bytes: []byte(v)}) })
}

// below says whether a host is another one, or a name below it.
func below(host, of string) bool {
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") && strings.IndexByte(host, ':') == i {
		host = host[:i]
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == of || strings.HasSuffix(host, "."+of)
}

// broken says whether a demand is not met; a rule without demands needs none.
func (c *compiled) broken(w *When, r *Response, body *content) bool {
	if c.mustContain == nil && c.mustNot == nil && w.MinBytes == 0 {
		return true
	}
	all := r.complete() && len(body.bytes) == len(r.Body)
	switch {
	case w.MinBytes > 0 && r.Size >= 0 && r.Size < w.MinBytes:
		return true
	case c.mustNot != nil && c.mustNot.in(body):
		return true
	case c.mustContain != nil && all && !c.mustContain.in(body):
		return true
	}
	return false
}
