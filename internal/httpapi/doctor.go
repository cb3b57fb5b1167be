package httpapi

import (
	"net/http"
)

type checkBody struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	Text   string `json:"text"`
	Hint   string `json:"hint"`
}

func (s *Server) doctor(w http.ResponseWriter, r *http.Request) error {
	if err := onlyQuery(r.URL.Query()); err != nil {
		return err
	}
	answer := struct {
		At      timestamp   `json:"at"`
		Version string      `json:"version"`
		Checks  []checkBody `json:"checks"`
	}{Version: s.version, Checks: []checkBody{}}
	for _, c := range s.k.Doctor(r.Context(), s.facts) {
		answer.Checks = append(answer.Checks, checkBody{c.Name, string(c.Status), c.Text, c.Hint})
	}
	answer.At = stamp(s.store.Now()) // last: the caller compares it with its own clock at the answer
	return writeJSON(w, http.StatusOK, answer)
}
