package rules

import (
	"bytes"
	"unicode/utf8"
)

// VisibleText counts the characters of a page that a reader sees, up to most:
// what is outside of tags, comments, and the contents of script, style, noscript
// and template, without blanks (space, tab, line ends). It is no HTML parser: an
// element's content ends at the next "</NAME" in any case, a comment at the next
// "-->", a tag at the next ">"; what never ends reaches to the end of the body.
// Entities count as they are written.
func VisibleText(body []byte, most int) int {
	count := 0
	for len(body) > 0 && count < most {
		if body[0] == '<' {
			body = skipMarkup(body)
			continue
		}
		if !blank(body[0]) {
			count++
		}
		_, size := utf8.DecodeRune(body)
		body = body[size:]
	}
	return count
}

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' }

// skipMarkup gives what follows the markup at the start of body.
func skipMarkup(body []byte) []byte {
	if bytes.HasPrefix(body, []byte("<!--")) {
		return after(body[4:], "-->")
	}
	for _, name := range []string{"script", "style", "noscript", "template"} {
		if isTag(body, name) {
			return after(afterElement(body[1:], name), ">")
		}
	}
	return after(body[1:], ">")
}

// isTag says whether body begins with the start tag of an element.
func isTag(body []byte, name string) bool {
	n := 1 + len(name)
	if len(body) <= n || !bytes.EqualFold(body[1:n], []byte(name)) {
		return false
	}
	c := body[n]
	return blank(c) || c == '>' || c == '/'
}

// afterElement gives what follows "</name"; nothing if there is no end.
func afterElement(body []byte, name string) []byte {
	for {
		i := bytes.Index(body, []byte("</"))
		if i < 0 {
			return nil
		}
		body = body[i+2:]
		if len(body) >= len(name) && bytes.EqualFold(body[:len(name)], []byte(name)) {
			return body[len(name):]
		}
	}
}

func after(body []byte, end string) []byte {
	i := bytes.Index(body, []byte(end))
	if i < 0 {
		return nil
	}
	return body[i+len(end):]
}
