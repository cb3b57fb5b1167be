package httpapi

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/hostler-proxy/hostler/internal/store"
)

// tokenList is the store's tokens, kept in memory.
type tokenList struct {
	mu   sync.RWMutex
	list []store.Token
}

func (t *tokenList) load(ctx context.Context, st store.Store) error {
	list, err := st.Tokens(ctx)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = list
	return nil
}

func (t *tokenList) any() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.list) > 0
}

// find looks a token up in constant time for each entry.
func (t *tokenList) find(secret string) (store.Token, bool) {
	hash := sha256.Sum256([]byte(secret))
	t.mu.RLock()
	defer t.mu.RUnlock()
	var found store.Token
	ok := false
	for _, entry := range t.list {
		if subtle.ConstantTimeCompare(entry.Hash, hash[:]) == 1 {
			found, ok = entry, true
		}
	}
	return found, ok
}

// NewToken makes a token's text and what the store keeps of it.
func NewToken(name, roleName string, now time.Time) (text string, t store.Token, err error) {
	if err := checkToken(name, roleName); err != nil {
		return "", t, err
	}
	var raw [24]byte
	if _, err := rand.Read(raw[:]); err != nil {
		return "", t, err
	}
	text = "hst_" + base64.RawURLEncoding.EncodeToString(raw[:])
	hash := sha256.Sum256([]byte(text))
	return text, store.Token{Name: name, Role: roleName, Hash: hash[:], Created: now}, nil
}

func checkToken(name, roleName string) error {
	if name == "" || len(name) > 64 {
		return invalid("name", "must have 1 to 64 characters")
	}
	for _, c := range name {
		if c <= 0x20 || c > 0x7e || c == '/' {
			return invalid("name", "holds a character that is not a letter, digit or plain sign")
		}
	}
	if !slices.Contains([]role{roleWorker, roleViewer, roleOperator}, role(roleName)) {
		return invalid("role", "must be worker, viewer or operator")
	}
	return nil
}

type tokenBody struct {
	Name      string    `json:"name"`
	Role      string    `json:"role"`
	CreatedAt timestamp `json:"created_at"`
	Token     string    `json:"token,omitempty"` // only in the answer that makes it
}

func (s *Server) listTokens(w http.ResponseWriter, r *http.Request) error {
	list, err := s.store.Tokens(r.Context())
	if err != nil {
		return err
	}
	out := []tokenBody{}
	for _, t := range list {
		out = append(out, tokenBody{Name: t.Name, Role: t.Role, CreatedAt: timestamp(t.Created)})
	}
	return writeJSON(w, http.StatusOK, map[string]any{"tokens": out})
}

func (s *Server) postToken(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Name string `json:"name"`
		Role string `json:"role"`
	}
	if err := decode(w, r, maxBody, &body); err != nil {
		return err
	}
	known, err := s.store.Tokens(r.Context())
	if err != nil {
		return err
	}
	for _, t := range known {
		if t.Name == body.Name {
			return problemOf(http.StatusConflict, "conflict", "a token of this name exists; revoke it first")
		}
	}
	if len(known) == 0 && body.Role != string(roleOperator) {
		return invalid("role", "the first token must be an operator's: with it, calls without a token end")
	}
	text, t, err := NewToken(body.Name, body.Role, s.store.Now().Std())
	if err != nil {
		return err
	}
	if err := s.store.PutToken(r.Context(), t); err != nil {
		return err
	}
	if err := s.tokens.load(r.Context(), s.store); err != nil {
		return err
	}
	return writeJSON(w, http.StatusCreated, tokenBody{Name: t.Name, Role: t.Role, CreatedAt: timestamp(t.Created), Token: text})
}

func (s *Server) deleteToken(w http.ResponseWriter, r *http.Request) error {
	known, err := s.store.DeleteToken(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	if !known {
		return problemOf(http.StatusNotFound, "unknown-token", "there is no token of this name")
	}
	if err := s.tokens.load(r.Context(), s.store); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
