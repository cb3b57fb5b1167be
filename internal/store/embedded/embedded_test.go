package embedded_test

import (
	"path/filepath"
	"testing"

	"github.com/hostler-proxy/hostler/internal/store"
	"github.com/hostler-proxy/hostler/internal/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Opened {
		path := filepath.Join(t.TempDir(), "test.db")
		s := open(t, path)
		return storetest.Opened{Store: s, Reopen: func(t *testing.T) store.Store {
			t.Helper()
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return open(t, path)
		}}
	})
}
