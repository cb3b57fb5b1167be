package httpapi

import (
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/hostler-proxy/hostler/internal/store"
)

// stalled is how long a caller may take for a piece of a backup before it is cut off.
const stalled = time.Minute

// backup answers the store's file as it is.
func (s *Server) backup(w http.ResponseWriter, r *http.Request) error {
	if err := onlyQuery(r.URL.Query()); err != nil {
		return err
	}
	file, ok := s.store.(store.File)
	if !ok {
		return problemOf(http.StatusConflict, "conflict", "this daemon's store is not a file: back it up by its own means")
	}
	if !s.backing.TryLock() {
		return problemOf(http.StatusConflict, "conflict", "another backup is under way; try again when it is done")
	}
	defer s.backing.Unlock()
	snap, err := file.Snapshot(r.Context())
	if err != nil {
		return err
	}
	defer snap.Close() //nolint:errcheck // it was read
	actOf(r).what = strconv.FormatInt(snap.Size(), 10) + " bytes"
	w.Header().Set("Content-Type", "application/vnd.sqlite3")
	w.Header().Set("Content-Length", strconv.FormatInt(snap.Size(), 10))
	if _, err = io.Copy(&patient{w, http.NewResponseController(w)}, snap); err != nil {
		actOf(r).result = "cut off" // the caller sees fewer bytes than it was promised
		return nil                  // the answer has begun: a problem would become a part of the file
	}
	actOf(r).count = 1
	return nil
}

// patient gives each piece of a long answer a time of its own.
type patient struct {
	w http.ResponseWriter
	c *http.ResponseController
}

// Write sends a piece.
func (p *patient) Write(b []byte) (int, error) {
	_ = p.c.SetWriteDeadline(time.Now().Add(stalled)) //nolint:forbidigo // a socket's deadline
	return p.w.Write(b)
}
