//go:build linux || darwin

package embedded

import "syscall"

// diskFree is how many bytes a user may still write on the disk of a folder; -1
// = not known.
func diskFree(dir string) int64 {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return -1
	}
	return int64(st.Bavail) * int64(st.Bsize) //nolint:unconvert // their types differ between systems
}
