package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hostler-proxy/hostler/api/apitest"
	"github.com/hostler-proxy/hostler/client"
)

const (
	leaseID = "q8Zt1mJxT0kAAAAAAAAAKg8eLTxLWml4h5altMPS4fA"
	proxyID = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"
)

func contract(t *testing.T) *apitest.Contract {
	t.Helper()
	c, err := apitest.Load()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// example is a server that checks each request against the contract and answers
// the contract's example.
type example struct {
	t    *testing.T
	c    *apitest.Contract
	seen string // operation ids, with commas
	body []byte // of the last request
}

func (e *example) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o := e.c.Find(r.Method, r.URL.EscapedPath())
	if o == nil {
		e.t.Errorf("%s %s is not in the contract", r.Method, r.URL.EscapedPath())
		w.WriteHeader(http.StatusNotFound)
		return
	}
	e.seen += o.ID + ","
	var err error
	if e.body, err = io.ReadAll(r.Body); err != nil {
		e.t.Error(err)
	}
	if err := o.CheckRequest(r, e.body); err != nil {
		e.t.Errorf("%s: %v", o.ID, err)
	}
	status, kind, body := o.Example()
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func serve(t *testing.T, h http.Handler, opts ...client.Option) *client.Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c, err := client.New(s.URL, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// calls use every operation with as many of its fields as there are.
func calls() map[string]func(ctx context.Context, c *client.Client) (any, error) {
	at := time.Date(2026, 12, 1, 12, 0, 0, 120e6, time.FixedZone("", 3600))
	facts := client.Facts{
		Phase: "headers", Status: 429, Error: "timeout", Class: "RATE_LIMITED", ElapsedMS: 5, ConnectMS: 1, FirstByteMS: 4, Bytes: 9,
		BodyBytes: 8, BodyHash: "h", RedirectHost: "a", Matched: []string{"r"}, RetryAfter: "30", ProxyStatus: "p", VendorError: "v",
		HTTPS: true, Valid: new(false), Items: 3, Method: "GET", Fence: 7,
		Request: &client.Request{Fingerprint: "f", URL: "https://shop.example/", Method: "GET", Attempt: 1},
	}
	acquire := client.AcquireRequest{
		Pool: "p", Target: "shop.example", Worker: "w", WorkerConcurrency: 4, RequestID: "r", Count: 2, TTLMS: 5000, WaitMS: 10,
		Session: "s", LeastBad: true, Request: facts.Request,
		Select: &client.Select{Region: "de", Scheme: "http", Group: "g", Labels: map[string]string{"k": "v"}, Exclude: []string{proxyID}},
	}
	note := client.Note{Lease: leaseID, Valid: new(true), Items: 2, Ban: true, Fence: 7}
	patch := client.ProxyPatch{
		State: new("disabled"), Reason: "r", Until: &at, Cap: new(0), Labels: &map[string]string{"k": "v"}, Region: new(""),
		ExpiresAt: &time.Time{},
	}
	filter := client.ProxyFilter{
		Pool: "p", State: "cooling", View: "leased", Region: "de", Label: "k=v", Group: "g", Source: "s", Sort: "score", Limit: 7, Cursor: "c",
	}
	return map[string]func(ctx context.Context, c *client.Client) (any, error){
		"acquireLeases": func(ctx context.Context, c *client.Client) (any, error) { return c.Acquire(ctx, acquire) },
		"reportLease":   func(ctx context.Context, c *client.Client) (any, error) { return c.Report(ctx, leaseID, facts) },
		"reportBatch": func(ctx context.Context, c *client.Client) (any, error) {
			return c.Reports(ctx, []client.LeaseReport{{Lease: leaseID, Facts: facts}, {Lease: "x"}})
		},
		"releaseLease": func(ctx context.Context, c *client.Client) (any, error) { return nil, c.Release(ctx, leaseID) },
		"revokeLease":  func(ctx context.Context, c *client.Client) (any, error) { return nil, c.Revoke(ctx, leaseID) },
		"noteLease":    func(ctx context.Context, c *client.Client) (any, error) { return nil, c.Note(ctx, note) },
		"noteBatch": func(ctx context.Context, c *client.Client) (any, error) {
			return c.Notes(ctx, "w", 4, []client.Note{note, {Lease: "x"}})
		},
		"exchange": func(ctx context.Context, c *client.Client) (any, error) {
			return c.Exchange(ctx, client.ExchangeRequest{
				Reports: []client.LeaseReport{{Lease: leaseID, Facts: facts}}, Notes: []client.Note{note}, Worker: "w", Seq: 5, Acquire: &acquire,
			})
		},
		"heartbeat": func(ctx context.Context, c *client.Client) (any, error) {
			return c.Heartbeat(ctx, "crawler 7/a", 16, []string{leaseID})
		},
		"takeProxy": func(ctx context.Context, c *client.Client) (any, error) {
			return c.TakeProxy(ctx, "p", "https://shop.example/?a=b", time.Second)
		},
		"listLeases":  func(ctx context.Context, c *client.Client) (any, error) { return c.Leases(ctx, "p", 20) },
		"listWorkers": func(ctx context.Context, c *client.Client) (any, error) { return c.Workers(ctx, "p") },
		"listProxies": func(ctx context.Context, c *client.Client) (any, error) {
			list, cursor, err := c.Proxies(ctx, filter)
			return []any{list, cursor}, err
		},
		"patchProxies": func(ctx context.Context, c *client.Client) (any, error) {
			return c.PatchProxies(ctx, filter, patch, client.Bulk{DryRun: true})
		},
		"importProxies": func(ctx context.Context, c *client.Client) (any, error) {
			return c.Import(ctx, strings.NewReader("192.0.2.1:80\n"), client.ImportOptions{
				Pool: "p", Scheme: "socks5", Exit: "rotating", Region: "de", Group: "g", Source: "s", Labels: map[string]string{"b": "2", "a": "1"},
				Cap: 3, ExpiresAt: at, TTL: 90 * time.Minute, AllowSpecial: true, Format: "csv", Columns: []string{"host", "port"},
				MapScheme: map[string]string{"https": "http"},
			})
		},
		"exportProxies": func(ctx context.Context, c *client.Client) (any, error) {
			return nil, c.Export(ctx, client.ExportOptions{ProxyFilter: filter, Format: "jsonl", Passwords: true}, io.Discard)
		},
		"getProxy":     func(ctx context.Context, c *client.Client) (any, error) { return c.Proxy(ctx, "p", proxyID) },
		"explainProxy": func(ctx context.Context, c *client.Client) (any, error) { return c.Why(ctx, "", proxyID) },
		"patchProxy": func(ctx context.Context, c *client.Client) (any, error) {
			return nil, c.PatchProxy(ctx, "p", proxyID, patch)
		},
		"deleteProxy": func(ctx context.Context, c *client.Client) (any, error) { return nil, c.DeleteProxy(ctx, "p", proxyID) },
		"listPools":   func(ctx context.Context, c *client.Client) (any, error) { return c.Pools(ctx) },
		"getPool":     func(ctx context.Context, c *client.Client) (any, error) { return c.Pool(ctx, "default") },
		"putPool": func(ctx context.Context, c *client.Client) (any, error) {
			return c.PutPool(ctx, "default", map[string]any{"ttl_ms": nil, "reuse_interval_ms": 5000, "caps": map[string]any{"static": 2}})
		},
		"deletePool":  func(ctx context.Context, c *client.Client) (any, error) { return nil, c.DeletePool(ctx, "old") },
		"listGroups":  func(ctx context.Context, c *client.Client) (any, error) { return c.Groups(ctx, "p") },
		"listSources": func(ctx context.Context, c *client.Client) (any, error) { return c.Sources(ctx) },
		"refreshSource": func(ctx context.Context, c *client.Client) (any, error) {
			return c.RefreshSource(ctx, "acme", true)
		},
		"acceptSource": func(ctx context.Context, c *client.Client) (any, error) { return c.AcceptSource(ctx, "acme") },
		"listTargets":  func(ctx context.Context, c *client.Client) (any, error) { return c.Targets(ctx, "p") },
		"getTarget": func(ctx context.Context, c *client.Client) (any, error) {
			return c.Target(ctx, "p", "[2001:db8::1]:80")
		},
		"putTarget": func(ctx context.Context, c *client.Client) (any, error) {
			return c.PutTarget(ctx, "p", "shop.example", client.TargetPolicy{
				ReuseIntervalMS: new(int64(12000)), DefaultRules: new(false),
				Rules: []client.Rule{{Name: "a", When: client.RuleWhen{
					Status: []int{200}, Header: &client.RuleHeader{Name: "X-A", Value: &client.RulePattern{Text: "a"}}, RedirectHost: "b.example",
					Contains: &client.RulePattern{Words: []string{"w"}}, MaxBytes: 5, MaxText: 6, MustContain: &client.RulePattern{Text: "x+", Regexp: true},
					MustNotContain: &client.RulePattern{Text: "y"}, MinBytes: 7,
				}}},
			})
		},
		"getTargetRules": func(ctx context.Context, c *client.Client) (any, error) {
			return c.TargetRules(ctx, "p", "[2001:db8::1]:80")
		},
		"listWaiters": func(ctx context.Context, c *client.Client) (any, error) { return c.Waiters(ctx, "p", 20) },
		"getCapacity": func(ctx context.Context, c *client.Client) (any, error) {
			return c.Capacity(ctx, "p", "shop.example", client.WhatIf{Proxies: new(200), Reuse: new(30 * time.Second), Latency: new(2 * time.Second)})
		},
		"getSession": func(ctx context.Context, c *client.Client) (any, error) { return c.Session(ctx, "p", "cart/17") },
		"deleteSession": func(ctx context.Context, c *client.Client) (any, error) {
			return nil, c.EndSession(ctx, "p", "cart/17")
		},
		"listFailures": func(ctx context.Context, c *client.Client) (any, error) {
			list, cursor, err := c.Failures(ctx, client.FailureFilter{
				Pool: "p", Worker: "w", Proxy: proxyID, Target: "t", Class: "PROXY_DIAL", Final: new(false), Since: at, Limit: 5, Cursor: "c",
			})
			return []any{list, cursor}, err
		},
		"recordFailure": func(ctx context.Context, c *client.Client) (any, error) {
			return nil, c.PostFailure(ctx, client.FinalFailure{
				Pool: "p", Target: "t", Worker: "w", Lease: leaseID, Request: facts.Request, Reason: "r", Class: "PROXY_DIAL",
				Attempts: []string{"PROXY_DIAL"}, WaitedMS: 3,
			})
		},
		"listTokens":  func(ctx context.Context, c *client.Client) (any, error) { return c.Tokens(ctx) },
		"createToken": func(ctx context.Context, c *client.Client) (any, error) { return c.NewToken(ctx, "crawl", "worker") },
		"revokeToken": func(ctx context.Context, c *client.Client) (any, error) { return nil, c.RevokeToken(ctx, "crawl") },
		"getConfig":   func(ctx context.Context, c *client.Client) (any, error) { return c.Config(ctx) },
		"applyConfig": func(ctx context.Context, c *client.Client) (any, error) {
			return c.ApplyConfig(ctx, strings.NewReader("pools: {}"), true)
		},
		"deleteProxies": func(ctx context.Context, c *client.Client) (any, error) {
			return c.DeleteProxies(ctx, filter, client.Bulk{DryRun: true, All: true})
		},
		"revokeLeases": func(ctx context.Context, c *client.Client) (any, error) {
			return c.RevokeLeases(ctx, client.LeaseFilter{
				Pool: "p", Lease: leaseID[:8], Worker: "w", Proxy: proxyID, Target: "t", Session: "s",
			}, client.Bulk{DryRun: true})
		},
		"releaseGroup": func(ctx context.Context, c *client.Client) (any, error) { return c.ReleaseGroup(ctx, "p", "acme/2") },
		"listSessions": func(ctx context.Context, c *client.Client) (any, error) {
			list, cursor, err := c.Sessions(ctx, client.SessionFilter{Pool: "p", Proxy: proxyID, Limit: 5, Cursor: "c"})
			return []any{list, cursor}, err
		},
		"moveSession": func(ctx context.Context, c *client.Client) (any, error) { return c.MoveSession(ctx, "p", "cart/17") },
		"listAudit": func(ctx context.Context, c *client.Client) (any, error) {
			list, cursor, err := c.Audit(ctx, client.AuditFilter{Act: "proxies.patch", Who: "ops", Since: at, Limit: 5, Cursor: "c"})
			return []any{list, cursor}, err
		},
		"backupStore": func(ctx context.Context, c *client.Client) (any, error) {
			_, err := c.Backup(ctx, io.Discard)
			return nil, err
		},
		"doctor": func(ctx context.Context, c *client.Client) (any, error) { return c.Doctor(ctx) },
		"streamEvents": func(ctx context.Context, c *client.Client) (any, error) {
			for e, err := range c.Events(ctx, 3) {
				return e, err
			}
			return nil, io.ErrUnexpectedEOF
		},
		"health":  func(ctx context.Context, c *client.Client) (any, error) { return nil, c.Health(ctx) },
		"ready":   func(ctx context.Context, c *client.Client) (any, error) { return nil, c.Ready(ctx) },
		"openAPI": func(ctx context.Context, c *client.Client) (any, error) { return c.OpenAPI(ctx) },
	}
}

// TestCallsAreAsTheContractHasThem sends every call to a server that checks it,
// and wants back what the contract's example says.
func TestCallsAreAsTheContractHasThem(t *testing.T) {
	c := contract(t)
	table := calls()
	for _, o := range c.Operations() {
		do := table[o.ID]
		if do == nil {
			t.Errorf("%s has no call", o.ID)
			continue
		}
		t.Run(o.ID, func(t *testing.T) {
			e := &example{t: t, c: c}
			got, err := do(t.Context(), serve(t, e))
			if err != nil {
				t.Fatal(err)
			}
			if e.seen != o.ID+"," {
				t.Errorf("the server saw %s", e.seen)
			}
			if _, kind, body := o.Example(); kind == "application/json" && got != nil {
				compareWithExample(t, got, body)
			}
		})
	}
}

// compareWithExample wants every value of the example in what was decoded.
func compareWithExample(t *testing.T, got any, body []byte) {
	t.Helper()
	var want map[string]any
	if err := json.Unmarshal(body, &want); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	var leaf func(v any)
	leaf = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, x := range v {
				leaf(x)
			}
		case []any:
			for _, x := range v {
				leaf(x)
			}
		case string:
			if at, err := time.Parse(time.RFC3339, v); err == nil {
				v = at.Format(time.RFC3339Nano)
			}
			if quoted, _ := json.Marshal(v); !strings.Contains(text, string(quoted)) {
				t.Errorf("%q got lost in %s", v, text)
			}
		}
	}
	leaf(want)
}

// models are the contract's schemas and what the client makes of them.
func models() map[string]any {
	return map[string]any{
		"Selector": client.Select{}, "RequestInfo": client.Request{}, "AcquireRequest": client.AcquireRequest{},
		"LeaseProxy": client.LeasedProxy{}, "Timeouts": client.Timeouts{}, "Rules": client.Rules{}, "Lease": client.Lease{},
		"Advice": client.Advice{}, "Grant": client.Acquired{}, "Facts": client.Facts{}, "LeaseReport": client.LeaseReport{},
		"Retry": client.Retry{}, "ReportResult": client.Reported{}, "Note": client.Note{}, "NotesTaken": client.NotesTaken{},
		"ExchangeRequest": client.ExchangeRequest{}, "ExchangeAnswer": client.Exchanged{}, "Beat": client.Beaten{},
		"HeartbeatAnswer": client.Heartbeat{}, "LiveLease": client.LiveLease{}, "Window": client.Window{}, "Windows": client.Windows{},
		"Hold": client.Hold{}, "Intervals": client.Intervals{}, "Proxy": client.Proxy{}, "Line": client.Rejection{},
		"ImportAnswer": client.Imported{}, "Pair": client.Pair{}, "ProxyExplanation": client.Why{}, "LeaseTotals": client.LeaseTotals{},
		"Pool": client.Pool{}, "Usage": client.Usage{}, "Money": client.Money{}, "Budget": client.Budget{}, "TargetPolicy": client.TargetPolicy{},
		"TargetRules": client.TargetRules{}, "Rule": client.Rule{}, "RuleWhen": client.RuleWhen{}, "RuleHeader": client.RuleHeader{},
		"PoolConfig": client.PoolConfig{}, "Change": client.Change{},
		"PolicyApplied": client.Applied{}, "Group": client.Group{}, "Votes": client.Votes{}, "Target": client.Target{},
		"Worker": client.Worker{}, "Session": client.Session{}, "Failure": client.Failure{}, "FinalFailure": client.FinalFailure{},
		"CreatedToken": client.Token{}, "ProxyBrief": client.ProxyBrief{}, "PatchAnswer": client.Matched{},
		"RevokeAnswer": client.Revoked{}, "GroupReleased": client.GroupReleased{}, "AuditRecord": client.AuditRecord{},
		"Check": client.Check{}, "Doctor": client.Doctor{}, "Problem": client.Problem{},
		"Source": client.Source{}, "SourceCounts": client.SourceCounts{}, "HeldSet": client.HeldSet{}, "SourceRefreshed": client.SourceRefreshed{},
		"WaiterSelector": client.WaiterSelector{},
		"WaiterLine":     client.WaiterLine{}, "WaiterList": client.Waiters{}, "CapacityFrom": client.CapacityFrom{}, "Capacity": client.Capacity{},
	}
}

// TestModelsHaveTheContractsFields compares names in both directions.
func TestModelsHaveTheContractsFields(t *testing.T) {
	c := contract(t)
	for name, model := range models() {
		schema, err := c.Resolve("#/components/schemas/" + name)
		if err != nil {
			t.Error(err)
			continue
		}
		want := fieldsOf(c, schema)
		got := jsonNames(reflect.TypeOf(model))
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (contract -, client +):\n%s", name, diff)
		}
	}
}

func fieldsOf(c *apitest.Contract, schema any) (names []string) {
	s, _ := schema.(map[string]any)
	if ref, ok := s["$ref"].(string); ok {
		to, _ := c.Resolve(ref)
		return fieldsOf(c, to)
	}
	props, _ := s["properties"].(map[string]any)
	for name := range props {
		names = append(names, name)
	}
	parts, _ := s["allOf"].([]any)
	for _, part := range parts {
		names = append(names, fieldsOf(c, part)...)
	}
	return names
}

func jsonNames(typ reflect.Type) (names []string) {
	for f := range typ.Fields() {
		if f.Anonymous {
			names = append(names, jsonNames(f.Type)...)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() {
			continue
		}
		names = append(names, name)
	}
	return names
}

// TestExamplesAreReadWhole decodes every example of the contract into its model
// without leaving anything over.
func TestExamplesAreReadWhole(t *testing.T) {
	list := func(name string, of any) reflect.Type {
		return reflect.StructOf([]reflect.StructField{{
			Name: "List", Type: reflect.SliceOf(reflect.TypeOf(of)), Tag: reflect.StructTag(fmt.Sprintf("json:%q", name)),
		}, {Name: "Cursor", Type: reflect.TypeFor[string](), Tag: `json:"cursor"`}, {
			Name: "ScannedUntil", Type: reflect.TypeFor[*time.Time](), Tag: `json:"scanned_until"`,
		}})
	}
	answers := map[string]reflect.Type{
		"acquireLeases": reflect.TypeFor[client.Acquired](), "reportLease": reflect.TypeFor[client.Reported](),
		"reportBatch": list("results", client.Reported{}), "noteLease": reflect.TypeFor[client.NotesTaken](),
		"noteBatch": reflect.TypeFor[client.NotesTaken](), "exchange": reflect.TypeFor[client.Exchanged](),
		"heartbeat": reflect.TypeFor[client.Heartbeat](), "listLeases": list("leases", client.LiveLease{}),
		"listWorkers": list("workers", client.Worker{}), "listProxies": list("proxies", client.Proxy{}),
		"getProxy": reflect.TypeFor[client.Proxy](), "explainProxy": reflect.TypeFor[client.Why](),
		"importProxies": reflect.TypeFor[client.Imported](), "listPools": list("pools", client.Pool{}),
		"getPool": reflect.TypeFor[client.Pool](), "putPool": reflect.TypeFor[client.Pool](), "listGroups": list("groups", client.Group{}),
		"listTargets": list("targets", client.Target{}), "getTarget": reflect.TypeFor[client.Target](),
		"putTarget": reflect.TypeFor[client.Applied](), "getTargetRules": reflect.TypeFor[client.TargetRules](),
		"getSession":   reflect.TypeFor[client.Session](),
		"listFailures": list("failures", client.Failure{}), "listTokens": list("tokens", client.Token{}),
		"createToken": reflect.TypeFor[client.Token](), "applyConfig": reflect.TypeFor[client.Applied](),
		"patchProxies": reflect.TypeFor[client.Matched](), "deleteProxies": reflect.TypeFor[client.Matched](),
		"revokeLeases": reflect.TypeFor[client.Revoked](), "releaseGroup": reflect.TypeFor[client.GroupReleased](),
		"listSessions": list("sessions", client.Session{}), "moveSession": reflect.TypeFor[client.Session](),
		"listAudit": list("audit", client.AuditRecord{}), "doctor": reflect.TypeFor[client.Doctor](),
		"listSources": list("sources", client.Source{}), "refreshSource": reflect.TypeFor[client.SourceRefreshed](),
		"acceptSource": reflect.TypeFor[client.SourceRefreshed](),
		"listWaiters":  reflect.TypeFor[client.Waiters](), "getCapacity": reflect.TypeFor[client.Capacity](),
		"getConfig": reflect.TypeFor[struct {
			Pools map[string]client.PoolConfig `json:"pools"`
		}](),
	}
	requests := map[string]reflect.Type{
		"acquireLeases": reflect.TypeFor[client.AcquireRequest](), "reportLease": reflect.TypeFor[client.Facts](),
		"reportBatch": list("reports", client.LeaseReport{}), "exchange": reflect.TypeFor[client.ExchangeRequest](),
		"recordFailure": reflect.TypeFor[client.FinalFailure](), "putTarget": reflect.TypeFor[client.TargetPolicy](),
	}
	for _, o := range contract(t).Operations() {
		if typ := answers[o.ID]; typ != nil {
			_, _, body := o.Example()
			decodeStrictly(t, o.ID, typ, body)
		}
		if typ := requests[o.ID]; typ != nil {
			decodeStrictly(t, o.ID+"'s body", typ, o.RequestExample())
		}
	}
}

func decodeStrictly(t *testing.T, name string, typ reflect.Type, body []byte) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(reflect.New(typ).Interface()); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// TestSlugsAreTheContractsProblemTypes compares the constants with the list.
func TestSlugsAreTheContractsProblemTypes(t *testing.T) {
	schema, err := contract(t).Resolve("#/components/schemas/ProblemType")
	if err != nil {
		t.Fatal(err)
	}
	s, _ := schema.(map[string]any)
	list, _ := s["enum"].([]any)
	var want []string
	for _, v := range list {
		want = append(want, strings.TrimPrefix(v.(string), "/problems/"))
	}
	got := []string{
		client.NoProxy, client.StoreUnavailable, client.RequestEnded, client.RequestConflict, client.Conflict, client.InvalidRequest,
		client.UnknownLease, client.UnknownProxy, client.UnknownPool, client.UnknownTarget, client.UnknownSession, client.UnknownToken, client.UnknownGroup,
		client.UnknownSource,
		client.Unauthorized, client.Forbidden, client.MisdirectedHost, client.CrossOrigin, client.NotFound, client.MethodNotAllowed,
		client.TooLarge, client.UnsupportedMediaType, client.Timeout, client.Internal,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
