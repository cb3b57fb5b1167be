package embedded

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// Restore makes a store of an export. The store must not exist, or be one in
// which nothing has happened yet. It is made beside its place and put there when
// it is whole and opens as a store does: what fails leaves nothing. Errors name
// the line.
func Restore(ctx context.Context, o Options, r io.Reader, progress Progress) (rows int64, err error) {
	lock, err := acquireLock(o.Path)
	if err != nil {
		return 0, err
	}
	defer lock.Unlock() //nolint:errcheck // the process lets go of it in any case
	if err := mustBeEmpty(o.Path); err != nil {
		return 0, err
	}
	f, err := os.CreateTemp(filepath.Dir(o.Path), filepath.Base(o.Path)+".import-*")
	if err != nil {
		return 0, fmt.Errorf("make store %s: %w", o.Path, err)
	}
	name := f.Name()
	_ = f.Close()
	defer func() {
		for _, rest := range []string{"", "-journal", "-wal", "-shm", ".lock"} {
			_ = os.Remove(name + rest)
		}
	}()
	own := o
	own.Path = name
	if rows, err = fill(ctx, own, r, progress); err != nil {
		return 0, err
	}
	s, err := openExisting(ctx, own)
	if err != nil {
		return 0, fmt.Errorf("what was imported makes no store: %s", withoutPath(err, name))
	}
	if err := s.Close(); err != nil {
		return 0, err
	}
	return rows, putInPlace(name, o.Path)
}

// putInPlace makes a file durable under its last name.
func putInPlace(name, path string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0) //nolint:gosec // made by us
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(name, path); err != nil {
		return err
	}
	if dir, err := os.Open(filepath.Dir(path)); err == nil {
		_ = dir.Sync() // not every system can
		_ = dir.Close()
	}
	return nil
}

// mustBeEmpty refuses a store that holds anything that an import would replace.
func mustBeEmpty(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("open store %s: %w", path, err)
	case info.Size() == 0:
		return nil
	}
	db, err := openSource(path)
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // only read
	tables, err := tablesOf(db)
	if err != nil {
		return notAStore(path, err)
	}
	for _, t := range tables {
		if slices.Contains([]string{"meta", "pool", "pool_total"}, t.name) {
			continue
		}
		n, err := count(db, "SELECT count(*) FROM "+t.name)
		if err != nil {
			return notAStore(path, err)
		}
		if n > 0 {
			return fmt.Errorf("store %s is not empty (%d rows in %s): an import makes a new store; name another file", path, n, t.name)
		}
	}
	return nil
}

// fill puts the rows of an export into a new file, in one transaction.
func fill(ctx context.Context, o Options, r io.Reader, progress Progress) (rows int64, err error) {
	db, err := sqlite.OpenConn(o.Path, sqlite.OpenReadWrite)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetInterrupt(ctx.Done())
	s := &Store{o: o, db: db}
	if err := s.create(); err != nil {
		return 0, err
	}
	list, err := tablesOf(db)
	if err != nil {
		return 0, err
	}
	in := &importer{db: db, tables: map[string]*intake{}, lines: bufio.NewReaderSize(r, 1<<20), progress: progress}
	for _, t := range list {
		if in.tables[t.name], err = newIntake(db, t); err != nil {
			return 0, err
		}
	}
	end, err := sqlitex.ImmediateTransaction(db)
	if err != nil {
		return 0, err
	}
	defer end(&err)
	return in.run(ctx)
}

// importer reads an export line by line.
type importer struct {
	db       *sqlite.Conn
	tables   map[string]*intake
	lines    *bufio.Reader
	line     int
	rows     int64
	progress Progress
}

// intake is a table that takes rows.
type intake struct {
	table *table
	stmt  *sqlite.Stmt
	place map[string]int // of a column
}

func newIntake(db *sqlite.Conn, t *table) (*intake, error) {
	stmt, err := db.Prepare("INSERT INTO " + t.name + " VALUES (" + marks(len(t.columns)) + ")")
	in := &intake{table: t, stmt: stmt, place: map[string]int{}}
	for i, c := range t.columns {
		in.place[c.name] = i
	}
	return in, err
}

// maxLine bounds a line of an export.
const maxLine = 16 << 20

// next reads a line; io.EOF behind the last one.
func (in *importer) next() ([]byte, error) {
	var line []byte
	for {
		part, err := in.lines.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return nil, fmt.Errorf("line %d: is longer than %d bytes", in.line+1, maxLine)
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (!errors.Is(err, io.EOF) || len(line) == 0):
			return nil, err
		}
		in.line++
		return bytes.TrimSpace(line), nil
	}
}

func (in *importer) run(ctx context.Context) (int64, error) {
	if err := in.head(); err != nil {
		return 0, err
	}
	for {
		line, err := in.next()
		switch {
		case errors.Is(err, io.EOF):
			return 0, fmt.Errorf("the export breaks off after line %d: its last line is missing", in.line)
		case err != nil:
			return 0, err
		}
		over, err := in.take(line)
		if err != nil {
			return 0, fmt.Errorf("line %d: %w", in.line, err)
		}
		if over {
			return in.rows, in.nothingMore()
		}
		if in.rows++; in.rows%1000 == 0 {
			in.progress(in.rows, 0)
			if err := ctx.Err(); err != nil {
				return 0, err
			}
		}
	}
}

func (in *importer) head() error {
	line, err := in.next()
	if errors.Is(err, io.EOF) {
		return errors.New("line 1: the export is empty")
	}
	if err != nil {
		return err
	}
	var head exportHead
	if err := strictly(line, &head); err != nil || head.Export == 0 {
		return errors.New("line 1: this is not an export of a store: hostler store export makes one")
	}
	switch {
	case head.Export != exportVersion:
		return fmt.Errorf("line 1: hostler_export: %d is a form that this version does not know; it knows %d", head.Export, exportVersion)
	case head.Schema != schemaVersion:
		return fmt.Errorf("line 1: schema: %d is not what this version writes (%d); import it with the version that exported it", head.Schema, schemaVersion)
	case !head.Secrets:
		return errors.New("line 1: secrets: this export was made without passwords, and proxies without theirs are of no use: export again with --passwords")
	}
	return nil
}

func strictly(line []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more behind the object")
	}
	return nil
}

// take puts one row in; over is true at the export's last line.
func (in *importer) take(line []byte) (over bool, err error) {
	var row struct {
		Table string                     `json:"table"`
		Row   map[string]json.RawMessage `json:"row"`
		Rows  *int64                     `json:"rows"`
	}
	if err := strictly(line, &row); err != nil {
		if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			return false, fmt.Errorf("%s is not a field of an export", name)
		}
		return false, errors.New("is not a JSON object of an export")
	}
	if row.Rows != nil {
		if row.Table != "" || *row.Rows != in.rows {
			return false, fmt.Errorf("rows: the export says %d rows and holds %d: a part of it is missing", *row.Rows, in.rows)
		}
		return true, nil
	}
	t := in.tables[row.Table]
	if t == nil {
		return false, fmt.Errorf("table: there is no table %q", row.Table)
	}
	return false, t.insert(row.Row)
}

func (in *importer) nothingMore() error {
	for {
		line, err := in.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case len(line) > 0:
			return fmt.Errorf("line %d: there is more behind the export's last line", in.line)
		}
	}
}

func (t *intake) insert(row map[string]json.RawMessage) error {
	for name := range row {
		if _, ok := t.place[name]; !ok {
			return fmt.Errorf("table %s has no column %q", t.table.name, name)
		}
	}
	for i, c := range t.table.columns {
		raw, ok := row[c.name]
		if !ok {
			return fmt.Errorf("table %s: column %s is missing", t.table.name, c.name)
		}
		if err := t.bind(i+1, c, raw); err != nil {
			return fmt.Errorf("table %s: column %s %w", t.table.name, c.name, err)
		}
	}
	_, err := t.stmt.Step()
	if reset := t.stmt.Reset(); err == nil {
		err = reset
	}
	if err != nil {
		return fmt.Errorf("table %s: %s", t.table.name, sqlite.ErrCode(err)) // its text may quote the row
	}
	return nil
}

// bind reads one value; its errors do not quote it, since it may be a password.
func (t *intake) bind(i int, c column, raw json.RawMessage) error {
	if string(raw) == "null" {
		if !c.null {
			return errors.New("must not be null")
		}
		t.stmt.BindNull(i)
		return nil
	}
	switch c.kind {
	case "INTEGER":
		var n int64
		if json.Unmarshal(raw, &n) != nil {
			return errors.New("must be a whole number")
		}
		t.stmt.BindInt64(i, n)
	case "REAL":
		var x float64
		if json.Unmarshal(raw, &x) != nil {
			return errors.New("must be a number")
		}
		t.stmt.BindFloat(i, x)
	case "TEXT":
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return errors.New("must be text")
		}
		t.stmt.BindText(i, s)
	case "BLOB":
		var s string
		b, err := []byte(nil), json.Unmarshal(raw, &s)
		if err == nil {
			b, err = base64.StdEncoding.DecodeString(s)
		}
		if err != nil {
			return errors.New("must be base64")
		}
		t.stmt.BindBytes(i, b)
	}
	return nil
}
