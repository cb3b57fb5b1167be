package embedded

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// exportVersion is the version of the export's form.
const exportVersion = 1

// exportHead is the first line of an export.
type exportHead struct {
	Export  int   `json:"hostler_export"`
	Schema  int64 `json:"schema"`
	Secrets bool  `json:"secrets"`
}

// exportEnd is its last line: without it the export broke off.
type exportEnd struct {
	Rows int64 `json:"rows"`
}

// Progress is told how many records of how many are done; a total of 0 = not known.
type Progress func(done, total int64)

// table is a table of the store as an export sees it.
type table struct {
	name    string
	columns []column
	key     []string // columns of the primary key, in order
}

type column struct {
	name string
	kind string // INTEGER, REAL, TEXT, BLOB
	null bool
}

// secretColumns leave an export without secrets.
var secretColumns = map[string]string{"proxy": "password", "meta": "value", "source": "held"}

// plainBlobs are the tables whose blobs are known to hold no secret: windows,
// hashes, and lease keys, which are of no use without the store's.
var plainBlobs = map[string]bool{"proxy_use": true, "target": true, "grp": true, "worker": true, "lease": true, "token": true, "meta": true}

// Export writes all that a store's file holds as JSON lines, in an order that
// depends on the content alone: equal stores give equal text. It works on a copy
// and may run while a daemon holds the file. Without secrets, proxy passwords and
// the store's keys are left out; such an export cannot be imported.
func Export(ctx context.Context, o Options, w io.Writer, secrets bool, progress Progress) error {
	copied, drop, err := temporary()
	if err != nil {
		return err
	}
	defer drop()
	if err := copyFile(ctx, o.Path, copied); err != nil {
		return err
	}
	own := o
	own.Path = copied
	s, err := openExisting(ctx, own) // what is not yet in the tables is then folded into them
	if err != nil {
		return fmt.Errorf("read store %s: %s", o.Path, withoutPath(err, copied))
	}
	if err := s.Close(); err != nil {
		return err
	}
	db, err := sqlite.OpenConn(copied, sqlite.OpenReadWrite)
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // a copy that goes
	db.SetInterrupt(ctx.Done())
	out := bufio.NewWriterSize(w, 1<<20)
	if err := exportAll(db, out, secrets, progress); err != nil {
		return errors.Join(ctx.Err(), err)
	}
	return out.Flush()
}

// openExisting opens a file that must be a store already: an empty one is none.
func openExisting(ctx context.Context, o Options) (*Store, error) {
	db, err := openSource(o.Path)
	if err != nil {
		return nil, err
	}
	app, err := pragma(db, "application_id")
	_ = db.Close()
	if err != nil || app != applicationID {
		return nil, errors.New("this is not a Hostler store")
	}
	return Open(ctx, o)
}

func withoutPath(err error, path string) string {
	return strings.TrimPrefix(strings.ReplaceAll(err.Error(), path, "the copy"), "open store the copy: ")
}

func exportAll(db *sqlite.Conn, out *bufio.Writer, secrets bool, progress Progress) error {
	tables, err := tablesOf(db)
	if err != nil {
		return err
	}
	total := int64(0)
	for _, t := range tables {
		n, err := count(db, "SELECT count(*) FROM "+t.name)
		if err != nil {
			return err
		}
		total += n
	}
	if err := writeLine(out, exportHead{exportVersion, schemaVersion, secrets}); err != nil {
		return err
	}
	done := int64(0)
	for _, t := range tables {
		if err := t.export(db, out, secrets, func() {
			if done++; done%1000 == 0 {
				progress(done, total)
			}
		}); err != nil {
			return fmt.Errorf("export table %s: %w", t.name, err)
		}
	}
	progress(done, total)
	return writeLine(out, exportEnd{done})
}

func writeLine(out *bufio.Writer, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = out.Write(append(line, '\n'))
	return err
}

// tablesOf lists the store's tables by name.
func tablesOf(db *sqlite.Conn) (list []*table, err error) {
	err = sqlitex.ExecuteTransient(db, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
		&sqlitex.ExecOptions{ResultFunc: func(r *sqlite.Stmt) error {
			list = append(list, &table{name: r.ColumnText(0)})
			return nil
		}})
	for _, t := range list {
		if err == nil {
			err = t.read(db)
		}
	}
	return list, err
}

func (t *table) read(db *sqlite.Conn) error {
	keys := map[int64]string{}
	err := sqlitex.Execute(db, "SELECT * FROM pragma_table_info(?)", &sqlitex.ExecOptions{
		Args: []any{t.name},
		ResultFunc: func(r *sqlite.Stmt) error {
			t.columns = append(t.columns, column{r.GetText("name"), strings.ToUpper(r.GetText("type")), r.GetInt64("notnull") == 0})
			if place := r.GetInt64("pk"); place > 0 {
				keys[place] = r.GetText("name")
			}
			return nil
		},
	})
	for place := int64(1); place <= int64(len(keys)); place++ {
		t.key = append(t.key, keys[place])
	}
	return err
}

// export writes a table's rows in the order of their keys.
func (t *table) export(db *sqlite.Conn, out *bufio.Writer, secrets bool, done func()) error {
	order := "rowid"
	if len(t.key) > 0 {
		order = strings.Join(t.key, ", ")
	}
	var line []byte
	return sqlitex.ExecuteTransient(db, "SELECT * FROM "+t.name+" ORDER BY "+order, &sqlitex.ExecOptions{
		ResultFunc: func(r *sqlite.Stmt) error {
			line = append(line[:0], `{"table":`...)
			line = appendText(line, t.name)
			line = append(line, `,"row":{`...)
			for i, c := range t.columns {
				if i > 0 {
					line = append(line, ',')
				}
				line = append(appendText(line, c.name), ':')
				var err error
				if line, err = t.appendValue(line, r, i, secrets); err != nil {
					return err
				}
			}
			done()
			_, err := out.Write(append(line, "}}\n"...))
			return err
		},
	})
}

func (t *table) appendValue(line []byte, r *sqlite.Stmt, i int, secrets bool) ([]byte, error) {
	c := t.columns[i]
	if r.ColumnIsNull(i) {
		return append(line, "null"...), nil
	}
	if !secrets {
		if secretColumns[t.name] == c.name {
			return append(line, "null"...), nil
		}
		if c.kind == "BLOB" && !plainBlobs[t.name] {
			return nil, fmt.Errorf("column %s may hold secrets that cannot be left out: say --passwords", c.name)
		}
	}
	switch c.kind {
	case "INTEGER":
		return strconv.AppendInt(line, r.ColumnInt64(i), 10), nil
	case "REAL":
		return strconv.AppendFloat(line, r.ColumnFloat(i), 'g', -1, 64), nil
	case "TEXT":
		return appendText(line, r.ColumnText(i)), nil
	case "BLOB":
		raw := make([]byte, r.ColumnLen(i))
		r.ColumnBytes(i, raw)
		line = append(line, '"')
		return append(base64.StdEncoding.AppendEncode(line, raw), '"'), nil
	default:
		return nil, fmt.Errorf("column %s is of a kind that an export does not know: %q", c.name, c.kind)
	}
}

func appendText(line []byte, s string) []byte {
	text, _ := json.Marshal(s) // a string: cannot fail
	return append(line, text...)
}
