package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Format writes settings in the form of the file, in the order of the
// documentation.
func Format(pools map[string]Settings) string {
	var b strings.Builder
	b.WriteString("pools:\n")
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		fmt.Fprintf(&b, "  %s:\n", name)
		formatPool(&b, pools[name])
	}
	return b.String()
}

func formatPool(b *strings.Builder, s Settings) {
	section := ""
	for _, f := range Fields() {
		value, ok := s[f.Path]
		if !ok {
			continue
		}
		indent, name := "    ", f.Path
		if level, rest, nested := strings.Cut(f.Path, "."); nested {
			if level != section {
				fmt.Fprintf(b, "    %s:\n", level)
			}
			section, indent, name = level, "      ", rest
		} else {
			section = ""
		}
		if f.Kind == "durations" || f.Kind == "names" {
			value = "[" + value + "]"
		}
		if value == "" {
			value = `""`
		}
		fmt.Fprintf(b, "%s%s: %s\n", indent, name, value)
	}
	formatNamed(b, s)
}

// formatNamed writes what targets and groups have of their own, a line each.
func formatNamed(b *strings.Builder, s Settings) {
	lines := map[[2]string][]string{} // by section and name
	for _, path := range slices.Sorted(maps.Keys(s)) {
		if f, name, ok := namedField(path); ok {
			at := [2]string{f.Section, name}
			lines[at] = append(lines[at], f.Setting+": "+s[path])
		}
	}
	section := ""
	for _, at := range slices.SortedFunc(maps.Keys(lines), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		if at[0] != section {
			section = at[0]
			fmt.Fprintf(b, "    %s:\n", section)
		}
		fmt.Fprintf(b, "      %s: {%s}\n", strconv.Quote(at[1]), strings.Join(lines[at], ", "))
	}
}
