package httpapi

import (
	"cmp"
	"net/http"

	"github.com/hostler-proxy/hostler/internal/keeper"
	"github.com/hostler-proxy/hostler/internal/proxy"
)

// exportProxies writes a pool's proxies as a list. Passwords are for operators.
func (s *Server) exportProxies(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	if err := onlyQuery(q, "pool", "format", "passwords", "state", "view", "region", "group", "label", "source"); err != nil {
		return err
	}
	req := keeper.ExportRequest{Pool: q.Get("pool"), Format: cmp.Or(proxy.Format(q.Get("format")), proxy.FormatURL)}
	var err error
	if req.Filter, err = filterOf(q); err != nil {
		return err
	}
	if req.Passwords, err = boolOf(q, "passwords"); err != nil {
		return err
	}
	if req.Passwords && !roleOf(r).allows(roleOperator) {
		return problemOf(http.StatusForbidden, "forbidden",
			"this token has the role "+string(roleOf(r))+"; an export with passwords needs "+string(roleOperator))
	}
	unhurried(w)
	out := &begun{w: w, kind: mediaTypeOf(req.Format)}
	if err := s.k.Export(r.Context(), req, out); err != nil {
		if out.yes {
			// The answer must not end as if the list were whole.
			s.log.WarnContext(r.Context(), "an export broke off", "error", err)
			panic(http.ErrAbortHandler)
		}
		return err
	}
	if !out.yes { // an empty list
		_, err = out.Write(nil)
	}
	return err
}

func mediaTypeOf(f proxy.Format) string {
	switch f {
	case proxy.FormatCSV:
		return "text/csv; charset=utf-8"
	case proxy.FormatJSON:
		return "application/json"
	case proxy.FormatJSONL:
		return "application/jsonl"
	case proxy.FormatAuto, proxy.FormatLines, proxy.FormatURL, proxy.FormatHostPort, proxy.FormatUserPass:
	}
	return "text/plain; charset=utf-8"
}

// begun remembers whether an answer has begun.
type begun struct {
	w    http.ResponseWriter
	kind string
	yes  bool
}

// Write writes on.
func (b *begun) Write(p []byte) (int, error) {
	if !b.yes {
		b.w.Header().Set("Content-Type", b.kind)
		b.yes = true
	}
	return b.w.Write(p)
}
