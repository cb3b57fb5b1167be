// Package api holds the HTTP contract.
package api

import _ "embed"

//go:embed openapi.yaml
var openapi []byte

// OpenAPI gives the contract as YAML.
func OpenAPI() []byte { return append([]byte(nil), openapi...) }
