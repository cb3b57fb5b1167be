package client

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// SourceChecks looks at the sources of proxies, as far as the daemon tells of
// them: what each says of its last fetch.
func (c *Client) SourceChecks(ctx context.Context) ([]Check, error) {
	var out struct{ Sources []map[string]any }
	err := c.do(ctx, call{name: "list sources", method: http.MethodGet, path: []string{"v1", "sources"}, list: true}, &out)
	switch {
	case IsProblem(err, NotFound), err == nil && len(out.Sources) == 0:
		return []Check{{Name: "sources", Status: "ok", Text: "none configured"}}, nil
	case err != nil:
		return nil, err
	}
	var checks []Check
	for _, s := range out.Sources {
		checks = append(checks, sourceCheck(s))
	}
	return checks, nil
}

// sourceCheck passes over fields that it does not know.
func sourceCheck(s map[string]any) Check {
	check := Check{Name: fmt.Sprintf("source %v", s["name"]), Status: "ok", Text: "its last fetch was good"}
	for _, field := range []string{"error", "last_error", "problem"} {
		if text, ok := s[field].(string); ok && text != "" {
			check.Status, check.Text, check.Hint = "warn", text, "the proxies from before stay; see to the source, then hostler sources refresh NAME"
		}
	}
	held, _ := s["held"].(bool)
	for _, field := range []string{"state", "status", "result"} {
		text, _ := s[field].(string)
		held = held || strings.Contains(text, "held")
	}
	if held {
		check.Status, check.Text = "warn", "it became much smaller at once, and is held back"
		check.Hint = "if that is right: hostler sources accept NAME"
	}
	return check
}
