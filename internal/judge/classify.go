package judge

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hostler-proxy/hostler/internal/pool"
)

// classesCSV is the one table of classes, for Go, Python and the lab. Columns:
// phase, error ("*" any, "" none, "ANY" any but none), status (one, a range, or
// "*"), https (yes, no, "*"), class, reason. The first row that matches counts.
//
//go:embed classes.csv
var classesCSV string

// Classes gives the table as it is served to clients.
func Classes() string { return classesCSV }

// Budgets are the timeouts that a lease carried.
type Budgets struct{ Connect, FirstByte, Total time.Duration }

const (
	phaseCount = 9
	errorCount = 16
	statusEnd  = 1000
)

// classTable is the table flattened: one byte for every phase, error, status
// and https, so that a look-up is one load.
type classTable [phaseCount][errorCount][statusEnd][2]pool.Class

// flat reads the table once.
var flat = sync.OnceValue(func() *classTable {
	t, err := readTable(classesCSV)
	if err != nil {
		panic("the embedded table of classes is damaged: " + err.Error()) // a fault of the build, caught by its test
	}
	return t
})

// readTable flattens a table. Rows are laid down from the last to the first, so
// that the first match counts.
func readTable(text string) (*classTable, error) {
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, err
	}
	t := new(classTable)
	for i := len(rows) - 1; i >= 1; i-- {
		if err := t.lay(rows[i]); err != nil {
			return nil, fmt.Errorf("row %d: %w", i+1, err)
		}
	}
	return t, nil
}

func (t *classTable) lay(row []string) error {
	class, err := pool.ParseClass(row[4])
	if err != nil {
		return err
	}
	phases, err := matching(row[0], Phases(), "")
	if err != nil {
		return err
	}
	errs, err := matching(row[1], ErrorKinds(), ErrorNone)
	if err != nil {
		return err
	}
	low, high, err := statusRange(row[2])
	if err != nil {
		return err
	}
	for _, p := range phases {
		for _, e := range errs {
			for s := low; s <= high; s++ {
				for h, yes := range []string{"no", "yes"} {
					if row[3] == "*" || row[3] == yes {
						t[p][e][s][h] = class
					}
				}
			}
		}
	}
	return nil
}

// matching lists the places in a list that a cell means.
func matching[T ~string](cell string, list []T, none T) ([]int, error) {
	var places []int
	for i, v := range list {
		if cell == "*" || cell == string(v) || cell == "ANY" && v != none {
			places = append(places, i)
		}
	}
	if len(places) == 0 {
		return nil, fmt.Errorf("%q is not known", cell)
	}
	return places, nil
}

func statusRange(cell string) (low, high int, err error) {
	if cell == "*" {
		return 0, statusEnd - 1, nil
	}
	a, b, isRange := strings.Cut(cell, "-")
	if low, err = strconv.Atoi(a); err != nil {
		return 0, 0, err
	}
	if !isRange {
		return low, low, nil
	}
	high, err = strconv.Atoi(b)
	return low, high, err
}

// Classify says what kind of outcome the facts are. It is total: valid facts
// have exactly one class.
func Classify(f *Facts, b Budgets) pool.Class {
	if f.Class != pool.ClassNone {
		return f.Class
	}
	if f.Error == ErrorTimeout && impatient(f, b) {
		return pool.ClassClientFault
	}
	phase := f.Phase
	if phase == "" {
		phase = PhaseBody
		if f.Error != ErrorNone {
			phase = PhaseSent
		}
	}
	class := flat()[slices.Index(Phases(), phase)][slices.Index(ErrorKinds(), f.Error)][f.Status][https(f)]
	if class != pool.ClassOK && class != pool.ClassTunnelDone {
		if said := bySignal(f); said != pool.ClassNone {
			return said
		}
	}
	if f.Status == 503 && f.RetryAfter != "" && (class == pool.ClassTarget5xx || class == pool.ClassPlain5xx) {
		return pool.ClassRateLimited
	}
	return class
}

func https(f *Facts) int {
	if f.HTTPS || strings.HasPrefix(f.Request.URL, "https:") {
		return 1
	}
	return 0
}

// impatient says that a timeout came before the lease's budget was used up: an
// impatient client must not burn proxies. An unknown time is believed.
func impatient(f *Facts, b Budgets) bool {
	spent := max(f.ElapsedMS, f.ConnectMS, f.FirstByteMS)
	if spent == 0 {
		return false
	}
	budget := b.FirstByte
	switch f.Phase {
	case PhaseProxyDial, PhaseProxyTLS, PhaseHandshake:
		budget = b.Connect
	case PhaseBody, PhaseValidate:
		budget = 0 // a stall in the body is judged by the caller
	}
	// a tenth of grace: clocks of clients start a little later than their timers
	return ms(spent) < budget-budget/10
}

// bySignal reads what a proxy says of itself. The headers are not verified, so
// they only ever move blame (RFC 9209; docs/policy.md, taxonomy).
func bySignal(f *Facts) pool.Class {
	if name := proxyStatusError(f.ProxyStatus); name != "" {
		switch name {
		case "connection_limit_reached":
			return pool.ClassProxyQuota
		case "http_request_denied", "destination_ip_prohibited":
			return pool.ClassProxyPolicy
		case "http_response_timeout":
			return pool.ClassTimeoutHeaders
		case "http_response_incomplete":
			return pool.ClassTimeoutBody
		case "dns_error", "dns_timeout", "destination_not_found", "destination_unavailable", "destination_ip_unroutable",
			"connection_refused", "connection_terminated", "connection_timeout", "connection_read_timeout",
			"connection_write_timeout", "tls_protocol_error", "tls_certificate_error", "tls_alert_received",
			"proxy_internal_error", "proxy_configuration_error", "proxy_internal_response":
			return pool.ClassViaUnreachable
		}
	}
	vendor := strings.ToLower(f.VendorError)
	for _, word := range []string{"quota", "bandwidth", "threads", "exceeded", "payment", "insufficient", "balance"} {
		if strings.Contains(vendor, word) {
			return pool.ClassProxyQuota
		}
	}
	if strings.Contains(vendor, "auth") {
		return pool.ClassProxyAuth
	}
	return pool.ClassNone
}

// proxyStatusError gives the value of the error parameter of a Proxy-Status
// header; "" when there is none.
func proxyStatusError(header string) string {
	for part := range strings.FieldsFuncSeq(header, func(r rune) bool { return r == ';' || r == ',' }) {
		if name, value, ok := strings.Cut(strings.TrimSpace(part), "="); ok && name == "error" {
			return strings.Trim(value, `" `)
		}
	}
	return ""
}
