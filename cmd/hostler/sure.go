package main

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/hostler-proxy/hostler/internal/app"
)

// askFlags are of commands that change many things at once.
type askFlags struct {
	DryRun bool `help:"Only tell how many it would be, and which."`
	All    bool `help:"Take everything in the pool: goes without a filter."`
	Yes    bool `help:"Do not ask." short:"y"`
}

// sure asks a person at a terminal whether an act is meant. Elsewhere nobody is
// asked: there a grave act must say --yes.
func (e *env) sure(question string, yes, grave bool) error {
	switch {
	case yes:
		return nil
	case e.person:
		_, _ = fmt.Fprintf(e.errs, "%s [y/N] ", question)
		line, _ := bufio.NewReader(e.in).ReadString('\n') // nothing read is a no
		if answer := strings.ToLower(strings.TrimSpace(line)); answer == "y" || answer == "yes" {
			return nil
		}
		_, _ = fmt.Fprintln(e.errs, "nothing was changed")
		return errNotMet
	case grave:
		return &app.UsageError{Text: question + " Say --yes if it is meant, or --dry-run to see more"}
	default:
		return nil
	}
}
