//go:build !linux && !darwin

package embedded

// diskFree is how many bytes a user may still write; not known here.
func diskFree(string) int64 { return -1 }
