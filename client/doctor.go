package client

import "context"

// SourceChecks looks at the sources of proxies: what each says of its last fetch.
func (c *Client) SourceChecks(ctx context.Context) ([]Check, error) {
	list, err := c.Sources(ctx)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return []Check{{Name: "sources", Status: "ok", Text: "none configured"}}, nil
	}
	var checks []Check
	for i := range list {
		checks = append(checks, sourceCheck(&list[i]))
	}
	return checks, nil
}

func sourceCheck(s *Source) Check {
	check := Check{Name: "source " + s.Name, Status: "ok", Text: "its last fetch was good"}
	switch {
	case s.Held != nil:
		check.Status, check.Text = "warn", s.Reason
		check.Hint = "if that is right: hostler sources accept " + s.Name
	case s.Stale:
		check.Status, check.Text = "fail", "it has not been fetched for three intervals: "+s.Reason
		check.Hint = "the proxies from before stay; see to the source, then hostler sources refresh " + s.Name
	case s.State == "failing":
		check.Status, check.Text = "warn", s.Reason
		check.Hint = "the proxies from before stay; see to the source, then hostler sources refresh " + s.Name
	case s.State == "never":
		check.Text = "it was not fetched yet"
	}
	return check
}
