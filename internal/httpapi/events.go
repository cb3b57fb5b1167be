package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/hostler-proxy/hostler/internal/keeper"
)

// keepAlive is how often an idle stream says that it is alive: below the idle
// limit of common reverse proxies, a minute.
const keepAlive = 20 * time.Second

// streamEvents sends the kept events after Last-Event-ID and stays open for more,
// unless the caller wants only those.
func (s *Server) streamEvents(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	if err := onlyQuery(q, "follow"); err != nil {
		return err
	}
	follow := true
	if q.Get("follow") != "" {
		var err error
		if follow, err = boolOf(q, "follow"); err != nil {
			return err
		}
	}
	last := int64(0)
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil || n < 0 {
			return invalid("Last-Event-ID", "must be the id of an event that was sent")
		}
		last = n
	}
	out := http.NewResponseController(w)
	_ = out.SetWriteDeadline(time.Time{}) // the stream has no end
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	alive := time.NewTicker(keepAlive)
	defer alive.Stop()
	for {
		list, more := s.k.EventsAfter(last)
		for i := range list {
			if err := writeEvent(w, &list[i]); err != nil {
				return nil // the listener went away: nobody to tell
			}
			last = list[i].N
		}
		if err := out.Flush(); err != nil || !follow {
			return nil // likewise
		}
		select {
		case <-more:
		case <-alive.C:
			_, _ = fmt.Fprint(w, ": alive\n\n")
		case <-r.Context().Done():
			return nil
		case <-s.k.Stopping():
			return nil
		}
	}
}

func writeEvent(w http.ResponseWriter, e *keeper.Event) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", e.N, e.Name, data)
	return err
}
