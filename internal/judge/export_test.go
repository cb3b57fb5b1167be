package judge

import (
	"bytes"
	"encoding/csv"
)

// SameTable says whether two tables of classes mean the same.
func SameTable(a, b [][]string) bool {
	return *tableOf(a) == *tableOf(b)
}

func tableOf(rows [][]string) *classTable {
	var text bytes.Buffer
	w := csv.NewWriter(&text)
	if err := w.WriteAll(rows); err != nil {
		panic(err)
	}
	t, err := readTable(text.String())
	if err != nil {
		panic(err)
	}
	return t
}
