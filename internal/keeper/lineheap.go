package keeper

import "container/heap"

// lineHeap holds lines, the one with the least key first. Lines know their place
// in it, so that any of them can be taken out.
type lineHeap struct {
	lines []*line
	by    func(*line) int64
	at    func(*line) *int
}

// Len, Less, Swap, Push and Pop are those of heap.Interface.
func (h *lineHeap) Len() int { return len(h.lines) }

// Less orders by the key.
func (h *lineHeap) Less(i, j int) bool { return h.by(h.lines[i]) < h.by(h.lines[j]) }

// Swap exchanges two lines.
func (h *lineHeap) Swap(i, j int) {
	h.lines[i], h.lines[j] = h.lines[j], h.lines[i]
	*h.at(h.lines[i]), *h.at(h.lines[j]) = i, j
}

// Push adds a line at the end.
func (h *lineHeap) Push(x any) {
	l := x.(*line)
	*h.at(l) = len(h.lines)
	h.lines = append(h.lines, l)
}

// Pop takes the line at the end.
func (h *lineHeap) Pop() any {
	last := len(h.lines) - 1
	l := h.lines[last]
	h.lines[last] = nil
	h.lines = h.lines[:last]
	*h.at(l) = -1
	return l
}

func (h *lineHeap) push(l *line)   { heap.Push(h, l) }
func (h *lineHeap) remove(l *line) { heap.Remove(h, *h.at(l)) }
