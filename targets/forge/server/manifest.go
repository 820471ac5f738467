package server

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"contend/targets/forge/emulator"
)

// DefaultEntities are the entities of the companion app.
func DefaultEntities() map[string]emulator.Entity {
	return map[string]emulator.Entity{"contend-record": {
		Attributes: map[string]emulator.Type{"token": emulator.String, "version": emulator.Integer,
			"updatedAt": emulator.Float, "expiresAt": emulator.Float, "body": emulator.Any},
		Indexes: []emulator.Index{{Name: "version", Range: "version"}},
	}}
}

// manifest is what matters here of an app's manifest.yml. Nodes have lines.
type manifest struct {
	App struct {
		Storage struct {
			Entities []yaml.Node `yaml:"entities"`
		} `yaml:"storage"`
	} `yaml:"app"`
}

type entity struct {
	Name       string `yaml:"name"`
	Attributes map[string]struct {
		Type yaml.Node `yaml:"type"`
	} `yaml:"attributes"`
	Indexes []yaml.Node `yaml:"indexes"`
}

type index struct {
	Name      string   `yaml:"name"`
	Range     []string `yaml:"range"`
	Partition []string `yaml:"partition"`
}

// ParseManifest reads the entities under app.storage.entities of a manifest.yml;
// there may be none. Errors tell the line.
func ParseManifest(text []byte) (map[string]emulator.Entity, error) {
	var m manifest
	if err := yaml.Unmarshal(text, &m); err != nil {
		return nil, err
	}
	entities := map[string]emulator.Entity{}
	for _, node := range m.App.Storage.Entities {
		var e entity
		if err := node.Decode(&e); err != nil {
			return nil, err
		}
		if e.Name == "" {
			return nil, fmt.Errorf("line %d: an entity needs a name", node.Line)
		}
		if _, twice := entities[e.Name]; twice {
			return nil, fmt.Errorf("line %d: entity %q is there twice", node.Line, e.Name)
		}
		declared, err := e.declare()
		if err != nil {
			return nil, err
		}
		if len(declared.Attributes) == 0 {
			return nil, fmt.Errorf("line %d: entity %q needs attributes", node.Line, e.Name)
		}
		entities[e.Name] = declared
	}
	return entities, nil
}

const typeNames = "string, boolean, float, integer, any"

func (e entity) declare() (emulator.Entity, error) {
	declared := emulator.Entity{Attributes: map[string]emulator.Type{}}
	for _, name := range slices.Sorted(maps.Keys(e.Attributes)) {
		node := e.Attributes[name].Type
		switch {
		case node.Line == 0:
			return emulator.Entity{}, fmt.Errorf("entity %q: attribute %q needs a type: %s", e.Name, name, typeNames)
		case !slices.Contains(strings.Split(typeNames, ", "), node.Value):
			return emulator.Entity{}, fmt.Errorf("line %d: type %q of attribute %q is not one of %s", node.Line, node.Value, name, typeNames)
		}
		declared.Attributes[name] = emulator.Type(node.Value)
	}
	for _, node := range e.Indexes {
		i, err := declareIndex(node, declared.Attributes)
		if err != nil {
			return emulator.Entity{}, err
		}
		if slices.ContainsFunc(declared.Indexes, func(other emulator.Index) bool { return other.Name == i.Name }) {
			return emulator.Entity{}, fmt.Errorf("line %d: index %q is there twice", node.Line, i.Name)
		}
		declared.Indexes = append(declared.Indexes, i)
	}
	return declared, nil
}

// declareIndex reads an index, which is the name of an attribute or has the form
// {name, range, partition}.
func declareIndex(node yaml.Node, attributes map[string]emulator.Type) (emulator.Index, error) {
	var i index
	if node.Decode(&i.Name) == nil {
		i.Range = []string{i.Name}
	} else if err := node.Decode(&i); err != nil {
		return emulator.Index{}, err
	}
	switch {
	case i.Name == "":
		return emulator.Index{}, fmt.Errorf("line %d: an index needs a name", node.Line)
	case i.Name == "by-key":
		return emulator.Index{}, fmt.Errorf("line %d: the index by-key is there by itself, and its name reserved", node.Line)
	case len(i.Range) != 1:
		return emulator.Index{}, fmt.Errorf("line %d: the range of index %q needs one attribute", node.Line, i.Name)
	}
	for _, name := range slices.Concat(i.Range, i.Partition) {
		if _, known := attributes[name]; !known {
			return emulator.Index{}, fmt.Errorf("line %d: index %q names the attribute %q, which the entity does not have", node.Line, i.Name, name)
		}
	}
	return emulator.Index{Name: i.Name, Range: i.Range[0], Partition: i.Partition}, nil
}
