package httpapi

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/hostler-proxy/hostler/internal/keeper"
	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/proxy"
)

type rejectionBody struct {
	Line   int    `json:"line"`
	Reason string `json:"reason"`
}

func rejectionsOf(list []proxy.Rejection) []rejectionBody {
	out := []rejectionBody{}
	for _, r := range list {
		out = append(out, rejectionBody{r.Line, r.Reason})
	}
	return out
}

// maxImport bounds the list that one call brings.
const maxImport = 256 << 20

func (s *Server) importProxies(w http.ResponseWriter, r *http.Request) error {
	req, err := importOf(r.URL.Query())
	if err != nil {
		return err
	}
	req.Body = http.MaxBytesReader(w, r.Body, maxImport)
	unhurried(w)
	res, err := s.k.Import(r.Context(), req)
	actOf(r).count = res.Accepted + res.Updated
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]any{
		"accepted": res.Accepted, "updated": res.Updated, "duplicates": res.Duplicates,
		"rejected": rejectionsOf(res.Rejected), "rejected_count": res.Rejections, "ignored": rejectionsOf(res.Ignored),
	})
}

// unhurried lifts the bounds of time for a call that carries a long list.
func unhurried(w http.ResponseWriter) {
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Time{}) // without it the usual bound holds
	_ = c.SetWriteDeadline(time.Time{})
}

func importOf(q url.Values) (req keeper.ImportRequest, err error) {
	err = onlyQuery(q, "pool", "format", "scheme", "map_scheme", "columns", "exit", "region", "group", "source", "labels", "cap", "expires_at", "ttl", "allow_special")
	if err != nil {
		return req, err
	}
	req = keeper.ImportRequest{
		Pool: q.Get("pool"), Exit: q.Get("exit"), Region: q.Get("region"), Group: q.Get("group"), Source: q.Get("source"),
		Labels: map[string]string{},
	}
	if req.Format, err = proxy.ParseFormat(q.Get("format")); err != nil {
		return req, invalid("format", err.Error())
	}
	if err = listShape(q, &req); err != nil {
		return req, err
	}
	if text := q.Get("scheme"); text != "" {
		if req.Scheme, err = proxy.ParseScheme(text); err != nil {
			return req, invalid("scheme", err.Error())
		}
	}
	for _, list := range q["labels"] {
		for part := range strings.SplitSeq(list, ",") {
			key, value, ok := strings.Cut(part, "=")
			if !ok {
				return req, invalid("labels", "must be key=value, several with commas between")
			}
			req.Labels[key] = value
		}
	}
	if text := q.Get("cap"); text != "" {
		if req.Cap, err = strconv.Atoi(text); err != nil {
			return req, invalid("cap", "must be a whole number")
		}
	}
	if text := q.Get("expires_at"); text != "" {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return req, invalid("expires_at", "must be RFC 3339, such as 2026-01-31T12:00:00Z")
		}
		req.ExpiresAt = pool.At(at)
	}
	if text := q.Get("ttl"); text != "" {
		if req.TTL, err = time.ParseDuration(text); err != nil {
			return req, invalid("ttl", "must be a duration such as 12h")
		}
	}
	req.AllowSpecial, err = boolOf(q, "allow_special")
	return req, err
}

// listShape reads what a list does not say itself.
func listShape(q url.Values, req *keeper.ImportRequest) error {
	if text := q.Get("columns"); text != "" {
		req.Columns = strings.Split(text, ",")
	}
	for _, list := range q["map_scheme"] {
		for part := range strings.SplitSeq(list, ",") {
			from, to, _ := strings.Cut(part, "=")
			a, errFrom := proxy.ParseScheme(from)
			b, errTo := proxy.ParseScheme(to)
			if errFrom != nil || errTo != nil {
				return invalid("map_scheme", "must be scheme=scheme, such as https=http, several with commas between")
			}
			if req.MapScheme == nil {
				req.MapScheme = map[proxy.Scheme]proxy.Scheme{}
			}
			req.MapScheme[a] = b
		}
	}
	return nil
}
