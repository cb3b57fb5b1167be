package app

import (
	"net/http"
	"sync/atomic"
)

// activity counts the requests that are being answered.
type activity struct{ now atomic.Int64 }

func (a *activity) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.now.Add(1)
		defer a.now.Add(-1)
		next.ServeHTTP(w, r)
	})
}
