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
	"sync/atomic"
	"time"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/store"
)

// tokenList is the store's tokens, kept in memory.
type tokenList struct {
	change sync.Mutex // one change at a time: each looks at what there is first
	mu     sync.RWMutex
	list   []store.Token
	used   map[string]*atomic.Int64 // when each was last sent, by name; a pool.Time
}

func (t *tokenList) load(ctx context.Context, st store.Store) error {
	list, err := st.Tokens(ctx)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	used := map[string]*atomic.Int64{}
	for _, entry := range list {
		if used[entry.Name] = t.used[entry.Name]; used[entry.Name] == nil {
			used[entry.Name] = &atomic.Int64{}
		}
	}
	t.list, t.used = list, used
	return nil
}

// lastUsed is when a token was last sent, 0 = not since the start.
func (t *tokenList) lastUsed(name string) pool.Time {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if at := t.used[name]; at != nil {
		return pool.Time(at.Load())
	}
	return 0
}

func (t *tokenList) any() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.list) > 0
}

// find looks a token up in constant time for each entry, and notes its use.
func (t *tokenList) find(secret string, now pool.Time) (store.Token, bool) {
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
	if ok {
		t.used[found.Name].Store(int64(now))
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
	UsedAt    timestamp `json:"last_used_at"`
	Token     string    `json:"token,omitempty"` // only in the answer that makes it
}

func (s *Server) listTokens(w http.ResponseWriter, r *http.Request) error {
	list, err := s.store.Tokens(r.Context())
	if err != nil {
		return err
	}
	out := []tokenBody{}
	for _, t := range list {
		out = append(out, tokenBody{Name: t.Name, Role: t.Role, CreatedAt: timestamp(t.Created), UsedAt: stamp(s.tokens.lastUsed(t.Name))})
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
	s.tokens.change.Lock()
	defer s.tokens.change.Unlock()
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
	actOf(r).count, actOf(r).what = 1, t.Name+" role="+t.Role
	return writeJSON(w, http.StatusCreated, tokenBody{Name: t.Name, Role: t.Role, CreatedAt: timestamp(t.Created), Token: text})
}

func (s *Server) deleteToken(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	if err := onlyQuery(q, "force"); err != nil {
		return err
	}
	force, err := boolOf(q, "force")
	if err != nil {
		return err
	}
	s.tokens.change.Lock()
	defer s.tokens.change.Unlock()
	list, err := s.store.Tokens(r.Context())
	if err != nil {
		return err
	}
	name := r.PathValue("name")
	if err := mayRevoke(list, name, force, s.exposed); err != nil {
		return err
	}
	known, err := s.store.DeleteToken(r.Context(), name)
	if err != nil {
		return err
	}
	if !known {
		return problemOf(http.StatusNotFound, "unknown-token", "there is no token of this name")
	}
	if err := s.tokens.load(r.Context(), s.store); err != nil {
		return err
	}
	actOf(r).count = 1
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// mayRevoke keeps a revocation from shutting all operators out, and from opening
// the door to everybody: without any token, whoever reaches the daemon is one.
func mayRevoke(list []store.Token, name string, force, exposed bool) error {
	operators, mine := 0, false // mine: it is an operator's
	for _, t := range list {
		if role(t.Role) == roleOperator {
			operators++
			mine = mine || t.Name == name
		}
	}
	last := len(list) == 1 && list[0].Name == name
	switch {
	case !mine && !last, operators > 1:
		return nil
	case last && exposed:
		return problemOf(http.StatusConflict, "conflict", "this is the last token, and the daemon listens to other machines: "+
			"without any token everybody there would be an operator; make another token first")
	case len(list) > 1 && !force:
		return problemOf(http.StatusConflict, "conflict", "this is the last operator's token: without it nobody could act any more; "+
			"make another one first, or say force=true")
	default:
		return nil
	}
}
