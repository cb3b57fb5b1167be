package keeper_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hostler-proxy/hostler/api"
	"github.com/hostler-proxy/hostler/internal/keeper"
)

// TestEveryEventIsNamed compares the constants named event... in the package with
// EventNames, docs/events.md and the contract.
func TestEveryEventIsNamed(t *testing.T) {
	guide, err := os.ReadFile("../../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	files, err := fs.Glob(os.DirFS("."), "*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if f, ok := call.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "emit" {
					if lit, ok := call.Args[0].(*ast.BasicLit); ok {
						t.Errorf("%s emits %s without a constant", name, lit.Value)
					}
				}
			}
			spec, ok := n.(*ast.ValueSpec)
			if !ok || !strings.HasPrefix(spec.Names[0].Name, "event") || len(spec.Values) != 1 {
				return true
			}
			if lit, ok := spec.Values[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
				value, _ := strconv.Unquote(lit.Value)
				found = append(found, value)
			}
			return true
		})
	}
	if len(found) == 0 {
		t.Fatal("no event is found")
	}
	for _, name := range found {
		if !slices.Contains(keeper.EventNames(), name) {
			t.Errorf("%s is not in EventNames", name)
		}
	}
	for _, name := range keeper.EventNames() {
		if !slices.Contains(found, name) {
			t.Errorf("%s has no constant", name)
		}
		if !strings.Contains(string(guide), "`"+name+"`") {
			t.Errorf("docs/events.md does not describe %s", name)
		}
		if !strings.Contains(string(api.OpenAPI()), "- `"+name+"`") {
			t.Errorf("api/openapi.yaml does not describe %s", name)
		}
	}
}
