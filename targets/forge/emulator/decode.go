package emulator

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"contend/targets/near"
)

// Unknown is a member of a request that the wire protocol does not have there.
type Unknown struct {
	Path  string // such as set[].options.keypolicy
	Meant string // the member it is nearly, in the same form; "": none
}

// Decode reads the JSON of a request into a pointer to a struct or to a slice of
// structs. encoding/json would take a member in any case of letters, and null for
// anything; here names are matched exactly, and null is a value where the field is a
// json.RawMessage alone. Members that are not known are left out and given back, each
// path once. The error says no more than that the body is not of this shape.
func Decode(body []byte, request any) ([]Unknown, error) {
	d := decoder{top: reflect.TypeOf(request).Elem()}
	err := d.decode(body, reflect.ValueOf(request).Elem(), "")
	return d.unknown, err
}

type decoder struct {
	top     reflect.Type
	unknown []Unknown
}

var rawMessage = reflect.TypeFor[json.RawMessage]()

// decode reads what stands at a path into a value.
func (d *decoder) decode(body []byte, into reflect.Value, path string) error {
	switch {
	case into.Type() == rawMessage:
		into.SetBytes(slices.Clone(body))
		return nil
	case string(bytes.TrimSpace(body)) == "null":
		return errInvalidBody
	case into.Kind() == reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		return d.decode(body, into.Elem(), path)
	case into.Kind() == reflect.Struct:
		return d.object(body, into, path)
	case into.Kind() == reflect.Slice:
		return d.list(body, into, path)
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if decoder.Decode(into.Addr().Interface()) != nil {
		return errInvalidBody
	}
	return nil
}

func (d *decoder) object(body []byte, into reflect.Value, path string) error {
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil {
		return errInvalidBody
	}
	var names []string
	for i := range into.NumField() {
		name := memberName(into.Type().Field(i))
		names = append(names, name)
		if member, there := members[name]; there {
			if err := d.decode(member, into.Field(i), below(path, name)); err != nil {
				return err
			}
			delete(members, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		d.note(path, name, names)
	}
	return nil
}

func (d *decoder) list(body []byte, into reflect.Value, path string) error {
	var items []json.RawMessage
	if json.Unmarshal(body, &items) != nil {
		return errInvalidBody
	}
	into.Set(reflect.MakeSlice(into.Type(), len(items), len(items)))
	for i, item := range items {
		if into.Type().Elem().Kind() == reflect.Interface && string(item) == "null" {
			continue // nil already
		}
		if err := d.decode(item, into.Index(i), path+"[]"); err != nil {
			return err
		}
	}
	return nil
}

// note notes a member that is not among the names, with the one that was probably
// meant: of the same object, or else one of this very name elsewhere.
func (d *decoder) note(path, name string, names []string) {
	u := Unknown{Path: below(path, name)}
	if slices.ContainsFunc(d.unknown, func(other Unknown) bool { return other.Path == u.Path }) {
		return
	}
	if meant := near.Name(name, names); meant != "" {
		u.Meant = below(path, meant)
	} else {
		u.Meant = elsewhere(d.top, "", name)
	}
	d.unknown = append(d.unknown, u)
}

// elsewhere gives the path of the first member of this name, in any case of letters,
// in a type.
func elsewhere(t reflect.Type, path, name string) string {
	switch {
	case t == rawMessage:
	case t.Kind() == reflect.Pointer:
		return elsewhere(t.Elem(), path, name)
	case t.Kind() == reflect.Slice:
		return elsewhere(t.Elem(), path+"[]", name)
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			field := t.Field(i)
			member := below(path, memberName(field))
			if strings.EqualFold(memberName(field), name) {
				return member
			}
			if found := elsewhere(field.Type, member, name); found != "" {
				return found
			}
		}
	}
	return ""
}

func memberName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}

func below(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
