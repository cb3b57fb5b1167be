package deps

import (
	_ "github.com/alecthomas/kong"
	_ "github.com/goccy/go-yaml"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/oapi-codegen/runtime"
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "github.com/tidwall/btree"
	_ "golang.org/x/net/publicsuffix"
	_ "golang.org/x/sync/errgroup"
	_ "golang.org/x/term"
	_ "pgregory.net/rapid"
	_ "zombiezen.com/go/sqlite"
)
