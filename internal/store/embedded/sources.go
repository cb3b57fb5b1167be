package embedded

import (
	"context"
	"encoding/json"
	"fmt"

	"zombiezen.com/go/sqlite"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/store"
)

// Leave implements store.Supply.
func (s *Store) Leave(ctx context.Context, p store.LeaveParams) (res store.LeaveResult, err error) {
	err = s.inPool(ctx, p.Pool, func(st *pool.State) error {
		res.Gone, res.Kept = st.Leave(s.now(p.Now), p.Source, p.IDs, p.DryRun)
		return nil
	})
	return res, err
}

// OfSource implements store.Views.
func (s *Store) OfSource(ctx context.Context, poolName, source string) (list []pool.Listed, err error) {
	err = s.look(ctx, poolName, func(st *pool.State) error {
		list = st.OfSource(source)
		return nil
	})
	return list, err
}

// Sources implements store.SourceRecords.
func (s *Store) Sources(ctx context.Context) (list []store.Source, err error) {
	err = s.apply(ctx, func() error {
		return s.execute("SELECT * FROM source ORDER BY name", nil, func(r *sqlite.Stmt) error {
			x := store.Source{Name: r.GetText("name"), Version: r.GetInt64("version")}
			for column, into := range map[string]any{"settings": &x.Settings, "state": &x.State} {
				if err := json.Unmarshal([]byte(r.GetText(column)), into); err != nil {
					return fmt.Errorf("source %q: column %s is damaged: %w", x.Name, column, err)
				}
			}
			if x.State.Held != nil {
				x.State.Held.List = blob(r, "held")
			}
			list = append(list, x)
			return nil
		})
	})
	return list, err
}

// PutSource implements store.SourceRecords. Like putPool it writes at once.
func (s *Store) PutSource(ctx context.Context, p store.PutSourceParams) (version int64, err error) {
	err = s.apply(ctx, func() error {
		known, err := s.sourceVersion(p.Name)
		switch {
		case err != nil:
			return err
		case known != p.Expect:
			return store.ErrConflict
		}
		settings, err := json.Marshal(p.Settings)
		if err != nil {
			return err
		}
		state, held, err := sourceColumns(&p.State)
		if err != nil {
			return err
		}
		version = known + 1
		return s.execute("INSERT OR REPLACE INTO source (name, version, settings, state, held) VALUES (?, ?, ?, ?, ?)",
			[]any{p.Name, version, string(settings), state, held}, nil)
	})
	return version, err
}

// PutSourceState implements store.SourceRecords.
func (s *Store) PutSourceState(ctx context.Context, name string, version int64, state store.SourceState) error {
	return s.apply(ctx, func() error {
		text, held, err := sourceColumns(&state)
		if err != nil {
			return err
		}
		err = s.execute("UPDATE source SET state = ?, held = ? WHERE name = ? AND version = ?", []any{text, held, name, version}, nil)
		if err == nil && s.db.Changes() == 0 {
			return store.ErrConflict
		}
		return err
	})
}

// DeleteSource implements store.SourceRecords.
func (s *Store) DeleteSource(ctx context.Context, name string) error {
	return s.apply(ctx, func() error {
		err := s.execute("DELETE FROM source WHERE name = ?", []any{name}, nil)
		if err == nil && s.db.Changes() == 0 {
			return store.ErrNoSource
		}
		return err
	})
}

func (s *Store) sourceVersion(name string) (version int64, err error) {
	err = s.execute("SELECT version FROM source WHERE name = ?", []any{name}, func(r *sqlite.Stmt) error {
		version = r.ColumnInt64(0)
		return nil
	})
	return version, err
}

func sourceColumns(state *store.SourceState) (text string, held []byte, err error) {
	raw, err := json.Marshal(state)
	if state.Held != nil {
		held = state.Held.List
	}
	return string(raw), held, err
}
