package httpapi

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/hostler-proxy/hostler/internal/keeper"
	"github.com/hostler-proxy/hostler/internal/pool"
)

// onlyQuery refuses parameters that a call does not have.
func onlyQuery(q url.Values, known ...string) error {
	for name := range q {
		if !slices.Contains(known, name) {
			return invalid(name, "is not a parameter of this call; known are "+strings.Join(known, ", "))
		}
	}
	return nil
}

func poolOf(q url.Values) string {
	if name := q.Get("pool"); name != "" {
		return name
	}
	return keeper.DefaultPool
}

// filterOf reads what selects proxies.
func filterOf(q url.Values) (pool.Filter, error) {
	f := pool.Filter{Region: q.Get("region"), Group: q.Get("group"), Source: q.Get("source"), View: q.Get("view")}
	if text := q.Get("state"); text != "" {
		status, err := pool.ParseStatus(text)
		if err != nil {
			return f, invalid("state", err.Error())
		}
		f.Status = &status
	}
	if !slices.Contains([]string{"", "ready", "leased", "full"}, f.View) {
		return f, invalid("view", "must be ready, leased or full")
	}
	if text := q.Get("label"); text != "" {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return f, invalid("label", "must be key=value")
		}
		f.Label = [2]string{key, value}
	}
	return f, nil
}

func limitOf(q url.Values, usual, most int) (int, error) {
	text := q.Get("limit")
	if text == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, invalid("limit", fmt.Sprintf("must be 1 to %d", most))
	}
	return n, nil
}

func cursorOf(q url.Values) (int64, error) {
	text := q.Get("cursor")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 36, 64)
	if err != nil || n < 0 {
		return 0, invalid("cursor", "is not one that this call gave")
	}
	return n, nil
}

func cursor(n int64) string { return strconv.FormatInt(n, 36) }

func boolOf(q url.Values, name string) (bool, error) {
	text := q.Get(name)
	if text == "" {
		return false, nil
	}
	b, err := strconv.ParseBool(text)
	if err != nil {
		return false, invalid(name, "must be true or false")
	}
	return b, nil
}
