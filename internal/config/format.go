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
		if f.Kind == "durations" {
			value = "[" + value + "]"
		}
		fmt.Fprintf(b, "%s%s: %s\n", indent, name, value)
	}
	header := false
	for _, path := range slices.Sorted(maps.Keys(s)) {
		if target, setting, ok := targetField(path); ok {
			if !header {
				b.WriteString("    targets:\n")
				header = true
			}
			fmt.Fprintf(b, "      %s: {%s: %s}\n", strconv.Quote(target), setting, s[path])
		}
	}
}
