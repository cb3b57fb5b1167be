package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// table prints rows under headings, no wider than the terminal: the widest
// column gives way first.
type table struct {
	head []string
	rows [][]string
}

func newTable(head ...string) *table { return &table{head: head} }

func (t *table) add(cells ...string) {
	for i := range cells {
		cells[i] = printable(cells[i])
	}
	t.rows = append(t.rows, cells)
}

// printable keeps control bytes from the terminal: names come from anywhere.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '?'
		}
		return r
	}, s)
}

func (t *table) print(out io.Writer) error {
	if len(t.rows) == 0 {
		_, err := fmt.Fprintln(out, "nothing to show")
		return err
	}
	widths := t.widths(screenWidth(out))
	var b strings.Builder
	for _, row := range append([][]string{t.head}, t.rows...) {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = pad(cell, widths[i])
		}
		b.WriteString(strings.TrimRight(strings.Join(cells, "  "), " ") + "\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func (t *table) widths(screen int) []int {
	widths := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for {
		total, widest := 2*(len(widths)-1), 0
		for i, w := range widths {
			total += w
			if w > widths[widest] {
				widest = i
			}
		}
		if total <= screen || widths[widest] <= 8 {
			return widths
		}
		widths[widest]--
	}
}

func pad(s string, width int) string {
	n := utf8.RuneCountInString(s)
	if n > width {
		runes := []rune(s)
		return string(runes[:width-1]) + "~"
	}
	return s + strings.Repeat(" ", width-n)
}

// screenWidth is the terminal's width; output into a file is not cut.
func screenWidth(out io.Writer) int {
	f, ok := out.(*os.File)
	if !ok {
		return 1 << 20
	}
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 20 {
		return width
	}
	return 1 << 20
}

func (e *env) printJSON(v any) error {
	enc := json.NewEncoder(e.out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func (e *env) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(e.out, format, args...)
}

// percent prints a rate, "-" when nothing was counted.
func percent(rate *float64) string {
	if rate == nil {
		return "-"
	}
	return strconv.Itoa(int(*rate*100+0.5)) + "%"
}

// left prints how long until a time.
func left(t *time.Time) string {
	if t == nil {
		return ""
	}
	d := time.Until(*t)
	if d <= 0 {
		return "now"
	}
	return short(d)
}

// ago prints how long since a time.
func ago(t *time.Time) string {
	if t == nil {
		return "never"
	}
	return short(time.Since(*t))
}

func short(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()+0.5))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}
