package embedded

import (
	"fmt"

	"zombiezen.com/go/sqlite/sqlitex"
)

// LimitPages lets the file grow by at most n pages more, as a full disk would; 0
// takes the limit away.
func (s *Store) LimitPages(n int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	limit := int64(1 << 30)
	if n > 0 {
		now, err := pragma(s.db, "page_count")
		if err != nil {
			return err
		}
		limit = now + n - 1
	}
	return sqlitex.ExecuteTransient(s.db, fmt.Sprintf("PRAGMA max_page_count = %d", limit), nil)
}
