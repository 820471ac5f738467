package suite

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// maxSize is in bytes; a file above it is something else, such as a record.
const maxSize = 1 << 20

// parse gives the top of the only document, or nil.
func (r *reader) parse(text []byte) *yaml.Node {
	top := &yaml.Node{Line: 1, Column: 1}
	if len(text) > maxSize {
		r.problem(top, "%d bytes are too many for a suite: at most %d are read", len(text), maxSize)
		return nil
	}
	if at := unreadable(text); at != nil {
		r.problem(at, "not a text: the file has to be UTF-8, without control characters")
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(text))
	if err != nil {
		r.problem(top, "not YAML: %v", err)
		return nil
	}
	var document, second yaml.Node
	if err := loader.Load(&document); errors.Is(err, io.EOF) {
		r.problem(top, "the file is empty: a suite needs runs")
		return nil
	} else if err != nil {
		r.broken(err)
		return nil
	}
	if err := loader.Load(&second); err == nil {
		r.problem(&second, "a second document: a suite is one; put its runs under the runs of the first")
	} else if !errors.Is(err, io.EOF) {
		r.broken(err)
	}
	return document.Content[0]
}

// broken reports an error of YAML's syntax.
func (r *reader) broken(err error) {
	at, text := &yaml.Node{Line: 1, Column: 1}, err.Error()
	if e, ok := errors.AsType[*yaml.LoadError](err); ok {
		if e.Mark.Line > 0 {
			at.Line, at.Column = e.Mark.Line, e.Mark.Column
		}
		if text = e.Message; strings.HasPrefix(text, "unknown anchor") {
			r.problem(at, aliasText)
			return
		}
		if e.ContextMsg != "" {
			text += " " + e.ContextMsg
			if e.ContextMark.Line > 0 && e.ContextMark != e.Mark {
				text += " that begins at " + e.ContextMark.String()
			}
		}
	}
	r.problem(at, "not YAML: %s", text)
}

// unreadable gives the place of the first byte that no text has, or nil.
func unreadable(text []byte) *yaml.Node {
	at := &yaml.Node{Line: 1, Column: 1}
	for len(text) > 0 {
		c, size := utf8.DecodeRune(text)
		switch {
		case c == '\n':
			at.Line, at.Column = at.Line+1, 1
		case c == utf8.RuneError && size == 1, unicode.IsControl(c) && c != '\t' && c != '\r' && c != '\u0085':
			return at
		default:
			at.Column++
		}
		text = text[size:]
	}
	return nil
}

const aliasText = "an alias of YAML is not taken here: write the value out, or put it into defaults"

// walk tells of what YAML has and a suite has not, in n and below.
func (r *reader) walk(n *yaml.Node) {
	switch {
	case n.Kind == yaml.AliasNode:
		r.problem(n, aliasText)
	case n.Anchor != "":
		r.problem(n, "an anchor of YAML is not taken here: what is meant for several runs goes into defaults")
	case n.Style&yaml.TaggedStyle != 0:
		r.problem(n, "a tag of YAML is not taken here: write the value alone")
	}
	for _, below := range n.Content {
		r.walk(below)
	}
	if n.Kind != yaml.MappingNode {
		return
	}
	first := make(map[string]int)
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		switch line, twice := first[key.Value]; {
		case key.Kind == yaml.AliasNode: // told
		case key.Kind != yaml.ScalarNode:
			r.problem(key, "a key has to be a name; there is %s", describe(key))
		case key.ShortTag() == "!!merge":
			r.problem(key, "a merge key of YAML is not taken here: what is meant for several runs goes into defaults")
		case twice:
			r.problem(key, "%s is written twice; the first is in line %d", shown(key.Value), line)
		default:
			first[key.Value] = key.Line
		}
	}
}

// told tells whether walk has refused the value itself.
func told(n *yaml.Node) bool {
	return n.Kind == yaml.AliasNode || n.Style&yaml.TaggedStyle != 0
}

// field is a key of a mapping with its value.
type field struct {
	name       string
	key, value *yaml.Node
}

// fields gives those of a mapping that walk has not refused.
func fields(n *yaml.Node) []field {
	var all []field
	seen := make(map[string]bool)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" || seen[key.Value] {
			continue
		}
		seen[key.Value] = true
		all = append(all, field{key.Value, key, n.Content[i+1]})
	}
	return all
}
