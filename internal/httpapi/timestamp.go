package httpapi

import (
	"encoding/json"
	"time"
)

// Timestamp is a time as the contract writes it: RFC 3339 in UTC with exactly
// three digits of a second. The zero value is null.
type Timestamp time.Time

// MarshalJSON prints the moment.
func (t Timestamp) MarshalJSON() ([]byte, error) {
	std := time.Time(t)
	if std.IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(std.UTC().Format("2006-01-02T15:04:05.000Z07:00"))
}

// UnmarshalJSON reads RFC 3339 with any number of digits.
func (t *Timestamp) UnmarshalJSON(b []byte) error {
	var std time.Time
	if err := json.Unmarshal(b, &std); err != nil {
		return err
	}
	*t = Timestamp(std)
	return nil
}
