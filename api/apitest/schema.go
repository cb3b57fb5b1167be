package apitest

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"
)

// Check says what of a JSON value is not as a schema has it. It knows the part
// of JSON Schema that the contract uses.
func (c *Contract) Check(schema, value any, at string) []error {
	s := c.deref(schema)
	if s == nil {
		return nil
	}
	if list := listOf(s["oneOf"]); list != nil {
		return c.checkOneOf(list, value, at)
	}
	if fault := checkType(s["type"], value, at); fault != nil {
		return []error{fault}
	}
	if enum := listOf(s["enum"]); enum != nil && value != nil && !slices.Contains(enum, value) {
		return []error{fmt.Errorf("%s: %v is not one of %v", at, value, enum)}
	}
	switch v := value.(type) {
	case map[string]any:
		return c.checkObject(s, v, at)
	case []any:
		return c.checkList(s, v, at)
	case string:
		return checkText(s, v, at)
	case float64:
		return checkNumber(s, v, at)
	}
	return nil
}

func (c *Contract) checkOneOf(list []any, value any, at string) []error {
	var first []error
	for _, s := range list {
		faults := c.Check(s, value, at)
		if len(faults) == 0 {
			return nil
		}
		if first == nil {
			first = faults
		}
	}
	return first
}

func checkType(want, value any, at string) error {
	if want == nil {
		return nil
	}
	types := listOf(want)
	if types == nil {
		types = []any{want}
	}
	have := typeOf(value)
	if slices.Contains(types, any(have)) || have == "integer" && slices.Contains(types, any("number")) {
		return nil
	}
	return fmt.Errorf("%s: is %s and must be %v", at, have, want)
}

func typeOf(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case float64:
		if v == math.Trunc(v) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	default:
		return "object"
	}
}

func (c *Contract) checkObject(s, v map[string]any, at string) (faults []error) {
	known, required := c.members(s)
	for _, name := range required {
		if _, ok := v[name]; !ok {
			faults = append(faults, fmt.Errorf("%s: is missing", join(at, name)))
		}
	}
	extra, hasExtra := s["additionalProperties"]
	for _, name := range slices.Sorted(maps.Keys(v)) {
		switch member, ok := known[name]; {
		case ok:
			faults = append(faults, c.Check(member, v[name], join(at, name))...)
		case hasExtra && extra != false:
			faults = append(faults, c.Check(extra, v[name], join(at, name))...)
		default:
			faults = append(faults, fmt.Errorf("%s: is not described", join(at, name)))
		}
	}
	return faults
}

func join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

// members are the properties of a schema and of all that it takes in.
func (c *Contract) members(s map[string]any) (known map[string]any, required []string) {
	known = map[string]any{}
	if props, ok := s["properties"].(object); ok {
		maps.Copy(known, props)
	}
	for _, name := range listOf(s["required"]) {
		required = append(required, fmt.Sprint(name))
	}
	for _, part := range listOf(s["allOf"]) {
		more, must := c.members(c.deref(part))
		maps.Copy(known, more)
		required = append(required, must...)
	}
	return known, required
}

func (c *Contract) checkList(s map[string]any, v []any, at string) (faults []error) {
	if n, ok := s["maxItems"].(float64); ok && len(v) > int(n) {
		faults = append(faults, fmt.Errorf("%s: has %d entries and may have %v", at, len(v), n))
	}
	if n, ok := s["minItems"].(float64); ok && len(v) < int(n) {
		faults = append(faults, fmt.Errorf("%s: has %d entries and must have %v", at, len(v), n))
	}
	for i, item := range v {
		faults = append(faults, c.Check(s["items"], item, fmt.Sprintf("%s[%d]", at, i))...)
	}
	return faults
}

func checkText(s map[string]any, v, at string) (faults []error) {
	n := float64(utf8.RuneCountInString(v))
	if most, ok := s["maxLength"].(float64); ok && n > most {
		faults = append(faults, fmt.Errorf("%s: is longer than %v", at, most))
	}
	if least, ok := s["minLength"].(float64); ok && n < least {
		faults = append(faults, fmt.Errorf("%s: is shorter than %v", at, least))
	}
	if pattern, ok := s["pattern"].(string); ok {
		if re, err := regexp.Compile(pattern); err != nil || !re.MatchString(v) {
			faults = append(faults, fmt.Errorf("%s: %q does not match %s", at, v, pattern))
		}
	}
	if s["format"] == "date-time" {
		if _, err := time.Parse("2006-01-02T15:04:05.000Z07:00", v); err != nil {
			faults = append(faults, fmt.Errorf("%s: %q is not RFC 3339 with milliseconds", at, v))
		}
	}
	return faults
}

func checkNumber(s map[string]any, v float64, at string) (faults []error) {
	if least, ok := s["minimum"].(float64); ok && v < least {
		faults = append(faults, fmt.Errorf("%s: %v is less than %v", at, v, least))
	}
	if most, ok := s["maximum"].(float64); ok && v > most {
		faults = append(faults, fmt.Errorf("%s: %v is more than %v", at, v, most))
	}
	return faults
}
