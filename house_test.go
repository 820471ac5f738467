package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// The layers from left to right: a package imports only from its own and from
// those to its right. What lies in a folder below a layer belongs to it.
var layers = []string{"main", "cmd", "report", "scenarios", "runner", "targets"}

// homes gives the folders in which alone a library is imported, by tests too.
var homes = map[string][]string{
	"github.com/spf13/cobra":                  {"cmd"},
	"github.com/spf13/pflag":                  {"cmd"},
	"github.com/oklog/ulid":                   {"cmd"},
	"golang.org/x/term":                       {"cmd"},
	"golang.org/x/sys":                        {"cmd"},
	"go.yaml.in/yaml":                         {"cmd", "targets/forge/server"},
	"github.com/rogpeppe/go-internal":         {"cmd"},
	"github.com/santhosh-tekuri/jsonschema":   {"cmd"},
	"pgregory.net/rapid":                      {"cmd", "report"},
	"github.com/HdrHistogram/hdrhistogram-go": {"report"},
	"github.com/olekukonko/tablewriter":       {"report"},
	"github.com/vbauerster/mpb":               {"report"},
	"github.com/guptarohit/asciigraph":        {"report"},
	"modernc.org/sqlite":                      {"report"},
	"github.com/aclements/go-moremath":        {"scenarios"},
	"github.com/anishathalye/porcupine":       {"scenarios"},
	"golang.org/x/sync":                       {"runner"},
	"github.com/jackc/pgx":                    {"targets/postgres", "targets/targettest"},
	"github.com/redis/go-redis":               {"targets/redis"},
	"github.com/go-sql-driver/mysql":          {"targets/forge/server"},
	"github.com/tidwall/redcon":               {"targets/targettest"},
	"github.com/alicebob/miniredis":           {"targets/targettest"},
}

// stores are the folders of targets, each of which imports no other; sim is Forge in this
// process, and has its emulator and its table of answers.
var stores = map[string][]string{
	"contend/targets/sim":      {"contend/targets/forge/emulator", "contend/targets/forge/wire"},
	"contend/targets/forge":    nil,
	"contend/targets/redis":    nil,
	"contend/targets/postgres": nil,
}

const list = "contend/targets/all"

// topLevel matches what may lie in the top folder, beside what .gitignore names.
var topLevel = []string{
	".ci", ".git", ".gitignore", "CONTRIBUTING.md", "LICENSE", "README.md",
	"go.mod", "go.sum", "tools.mod", "tools.sum", "main.go", "*_test.go",
	"cmd", "docs", "examples", "report", "runner", "scenarios", "targets", "testdata",
}

// A listed package is what "go list" tells of it.
type listed struct {
	ImportPath, Dir, Export          string
	GoFiles, IgnoredGoFiles, Imports []string
	TestImports, XTestImports        []string
	Module                           *struct{ Main bool }
}

// path gives the path of a file of a package of this module.
func (p listed) path(file string) string {
	return filepath.Join(".", strings.TrimPrefix(p.ImportPath, "contend"), file)
}

// goList gives the packages of this module and all that they depend on.
var goList = sync.OnceValues(func() ([]listed, error) {
	command := exec.Command("go", "list", "-buildvcs=false", "-deps", "-export",
		"-json=ImportPath,Export,GoFiles,IgnoredGoFiles,Imports,TestImports,XTestImports,Module", "./...")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, &stderr)
	}
	var packages []listed
	decoder := json.NewDecoder(bytes.NewReader(output))
	for decoder.More() {
		var p listed
		if err := decoder.Decode(&p); err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		packages = append(packages, p)
	}
	return packages, nil
})

// ours gives the packages of this module, and an importer for all that they import.
func ours(t *testing.T, fset *token.FileSet) ([]listed, types.Importer) {
	t.Helper()
	packages, err := goList()
	if err != nil {
		t.Fatal(err)
	}
	exports := map[string]string{}
	var own []listed
	for _, p := range packages {
		exports[p.ImportPath] = p.Export
		if p.Module != nil && p.Module.Main {
			own = append(own, p)
		}
	}
	if len(own) < len(layers) {
		t.Fatalf("go list gives %d packages of this module; there are %d layers", len(own), len(layers))
	}
	return own, importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
}

// layer gives the layer that a package of this module belongs to, and "" for
// packages of others.
func layer(importPath string) string {
	if importPath == "contend" {
		return "main"
	}
	below, ok := strings.CutPrefix(importPath, "contend/")
	if !ok {
		return ""
	}
	top, _, _ := strings.Cut(below, "/")
	return top
}

// againstTheLine gives the imports that lead to the left, and the packages that
// are in no layer.
func againstTheLine(packages []listed) []string {
	var offences []string
	for _, p := range packages {
		from := slices.Index(layers, layer(p.ImportPath))
		if from < 0 {
			offences = append(offences, p.ImportPath+" is in no layer")
			continue
		}
		for _, imported := range p.Imports {
			if to := layer(imported); to != "" && slices.Index(layers, to) < from {
				offences = append(offences, p.ImportPath+" imports "+imported)
			}
		}
	}
	return offences
}

// testsAgainstTheLine gives the imports of tests within a package that lead to the left.
// Tests outside of it are its users, and may be so with what stands there.
func testsAgainstTheLine(packages []listed) []string {
	var tests []listed
	for _, p := range packages {
		tests = append(tests, listed{ImportPath: p.ImportPath, Imports: p.TestImports})
	}
	return againstTheLine(tests)
}

// awayFromHome gives the imports of a library outside its homes.
func awayFromHome(packages []listed) []string {
	var offences []string
	for _, p := range packages {
		for _, imported := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			for library, folders := range homes {
				if within(imported, library) && !slices.ContainsFunc(folders, func(home string) bool { return within(p.ImportPath, "contend/"+home) }) {
					offences = append(offences, p.ImportPath+" imports "+imported)
				}
			}
		}
	}
	return offences
}

// within tells whether a package is another or below it.
func within(importPath, folder string) bool {
	return importPath == folder || strings.HasPrefix(importPath, folder+"/")
}

// storeOf gives the store that a package belongs to; "": none.
func storeOf(importPath string) string {
	for store := range stores {
		if within(importPath, store) {
			return store
		}
	}
	return ""
}

// acrossStores gives the imports that break one of the rules of targets: the contract
// imports no library; a store imports no other; the list of all is for cmd and for tests
// alone, and nobody else imports several stores.
func acrossStores(packages []listed) []string {
	var offences []string
	for _, p := range packages {
		mine, tested := storeOf(p.ImportPath), within(p.ImportPath, "contend/targets/targettest")
		met := map[string]bool{}
		for _, imported := range p.Imports {
			offence := false
			if p.ImportPath == "contend/targets" {
				first, _, _ := strings.Cut(imported, "/")
				offence = strings.Contains(first, ".") || layer(imported) != "" && imported != "contend/targets/secret"
			}
			if other := storeOf(imported); other != "" && other != mine && !slices.Contains(stores[mine], imported) {
				met[other] = true
				offence = offence || mine != "" || len(met) > 1 && p.ImportPath != list && layer(p.ImportPath) != "cmd" && !tested
			}
			offence = offence || imported == list && layer(p.ImportPath) != "cmd" && !tested
			if offence {
				offences = append(offences, p.ImportPath+" imports "+imported)
			}
		}
		for _, imported := range slices.Concat(p.TestImports, p.XTestImports) {
			if other := storeOf(imported); mine != "" && other != "" && other != mine {
				offences = append(offences, p.ImportPath+" imports "+imported)
			}
		}
	}
	return offences
}

// hiddenStarts gives what runs in a file without being called: init functions,
// and imports for their side effects.
func hiddenStarts(file *ast.File) []ast.Node {
	var offences []ast.Node
	for _, imported := range file.Imports {
		if imported.Name != nil && imported.Name.Name == "_" {
			offences = append(offences, imported)
		}
	}
	for _, declaration := range file.Decls {
		if f, ok := declaration.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
			offences = append(offences, f)
		}
	}
	return offences
}

// changedVariables gives the places where a package-level variable, of whatever
// package, is changed: assigned to as a whole or in part, or its address taken,
// as the call of a method with a pointer receiver does too. What a function does
// to a map, slice or pointer that it is given is not seen.
func changedVariables(file *ast.File, info *types.Info) []ast.Node {
	var offences []ast.Node
	check := func(changed ...ast.Expr) {
		for _, e := range changed {
			if isPackageLevel(e, info) {
				offences = append(offences, e)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			check(n.Lhs...)
		case *ast.IncDecStmt:
			check(n.X)
		case *ast.RangeStmt:
			check(n.Key, n.Value)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				check(n.X)
			}
		case *ast.SelectorExpr:
			if takesAddress(info.Selections[n]) {
				check(n.X)
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok && len(n.Args) > 0 {
				_, builtin := info.Uses[f].(*types.Builtin)
				if builtin && slices.Contains([]string{"clear", "copy", "delete"}, f.Name) {
					check(n.Args[0])
				}
			}
		}
		return true
	})
	return offences
}

// takesAddress tells whether x.f calls a method on &x.
func takesAddress(s *types.Selection) bool {
	if s == nil || s.Kind() != types.MethodVal || s.Indirect() {
		return false
	}
	_, pointer := s.Obj().(*types.Func).Signature().Recv().Type().Underlying().(*types.Pointer)
	return pointer
}

// isPackageLevel tells whether an expression is a package-level variable or a
// part of one.
func isPackageLevel(e ast.Expr, info *types.Info) bool {
	switch e := e.(type) {
	case *ast.Ident:
		v, ok := info.Uses[e].(*types.Var)
		return ok && v.Pkg() != nil && v.Parent() == v.Pkg().Scope()
	case *ast.SelectorExpr:
		return isPackageLevel(e.Sel, info) || isPackageLevel(e.X, info)
	case *ast.IndexExpr:
		return isPackageLevel(e.X, info)
	case *ast.SliceExpr:
		return isPackageLevel(e.X, info)
	case *ast.StarExpr:
		return isPackageLevel(e.X, info)
	case *ast.ParenExpr:
		return isPackageLevel(e.X, info)
	}
	return false
}

// strays gives the names that no pattern matches.
func strays(names, patterns []string) []string {
	var offences []string
	for _, name := range names {
		if !slices.ContainsFunc(patterns, func(pattern string) bool {
			ok, _ := path.Match(pattern, name)
			return ok
		}) {
			offences = append(offences, name)
		}
	}
	return offences
}

func TestLayersAreALine(t *testing.T) {
	t.Run("planted", func(t *testing.T) {
		expect(t, againstTheLine([]listed{
			{ImportPath: "contend", Imports: []string{"contend/cmd", "os"}},
			{ImportPath: "contend/cmd", Imports: []string{"contend/cmd/suite", "contend/targets"}},
			{ImportPath: "contend/cmd/suite", Imports: []string{"contend/report/store", "contend/runner"}},
			{ImportPath: "contend/report/store", Imports: []string{"contend/cmd"}},
			{ImportPath: "contend/targets/targettest", Imports: []string{"contend/targets", "contend/runner"}},
			{ImportPath: "contend/targets", Imports: []string{"contend/util", "contending/cmd"}},
			{ImportPath: "contend/util"},
		}),
			"contend/report/store imports contend/cmd",
			"contend/targets/targettest imports contend/runner",
			"contend/targets imports contend/util",
			"contend/util is in no layer")
	})
	t.Run("planted in tests", func(t *testing.T) {
		expect(t, testsAgainstTheLine([]listed{
			{ImportPath: "contend/runner", TestImports: []string{"contend/targets/all", "contend/scenarios"}, XTestImports: []string{"contend/runner", "contend/report"}},
		}),
			"contend/runner imports contend/scenarios")
	})
	packages, _ := ours(t, token.NewFileSet())
	none(t, "imports go from left to right: "+strings.Join(layers, ", "), againstTheLine(packages))
	none(t, "the imports of tests do too", testsAgainstTheLine(packages))
}

// withStores gives the imports of this module by the packages of statistics, which know
// no store.
func withStores(packages []listed) []string {
	var offences []string
	for _, p := range packages {
		for _, imported := range p.Imports {
			statistics := p.ImportPath == "contend/scenarios/stats" || p.ImportPath == "contend/scenarios/survival"
			if statistics && layer(imported) != "" {
				offences = append(offences, p.ImportPath+" imports "+imported)
			}
		}
	}
	return offences
}

func TestStatisticsKnowNoStore(t *testing.T) {
	t.Run("planted", func(t *testing.T) {
		expect(t, withStores([]listed{
			{ImportPath: "contend/scenarios", Imports: []string{"contend/scenarios/stats", "contend/targets"}},
			{ImportPath: "contend/scenarios/stats", Imports: []string{"math", "contend/targets"}},
			{ImportPath: "contend/scenarios/survival", Imports: []string{"time", "contend/runner"}},
		}),
			"contend/scenarios/stats imports contend/targets",
			"contend/scenarios/survival imports contend/runner")
	})
	packages, _ := ours(t, token.NewFileSet())
	none(t, "statistics know no store", withStores(packages))
}

func TestEachLibraryHasOneHome(t *testing.T) {
	t.Run("planted", func(t *testing.T) {
		for library, folders := range homes {
			expect(t, awayFromHome([]listed{
				{ImportPath: "contend/" + folders[0], Imports: []string{library, library + "/v9/sub"}, TestImports: []string{library}},
				{ImportPath: "contend/" + folders[0] + "/sub", Imports: []string{library, library + "ish"}},
				{ImportPath: "contend", Imports: []string{library + "/v9/sub"}, XTestImports: []string{library}},
			}),
				"contend imports "+library+"/v9/sub", "contend imports "+library)
		}
	})
	packages, _ := ours(t, token.NewFileSet())
	none(t, "a library is imported only in its home", awayFromHome(packages))
}

func TestStoresStandApart(t *testing.T) {
	t.Run("planted", func(t *testing.T) {
		expect(t, acrossStores([]listed{
			{ImportPath: "contend/targets", Imports: []string{"net/url", "contend/targets/secret", "contend/targets/kit", "github.com/redis/go-redis/v9"}},
			{ImportPath: "contend/targets/redis", Imports: []string{"contend/targets", "contend/targets/kit", "github.com/redis/go-redis/v9", "contend/targets/postgres"}},
			{ImportPath: "contend/targets/sim", Imports: []string{"contend/targets/forge/emulator", "contend/targets/forge/wire", "contend/targets/forge"}},
			{ImportPath: "contend/targets/forge", Imports: []string{"contend/targets/forge/emulator", "contend/targets/sim"}},
			{ImportPath: "contend/targets/all", Imports: []string{"contend/targets/sim", "contend/targets/redis"}},
			{ImportPath: "contend/targets/kit", Imports: []string{"contend/targets", "contend/targets/sim", "contend/targets/redis"}},
			{ImportPath: "contend/runner", Imports: []string{"contend/targets/all"}},
			{ImportPath: "contend/cmd", Imports: []string{"contend/targets/all", "contend/targets/forge/app", "contend/targets/sim"}},
			{ImportPath: "contend/targets/postgres", XTestImports: []string{"contend/targets/all", "contend/targets/forge/emulator"}},
			{ImportPath: "contend/targets/targettest/try", Imports: []string{"contend/targets/all"}},
		}),
			"contend/targets imports contend/targets/kit", "contend/targets imports github.com/redis/go-redis/v9",
			"contend/targets/redis imports contend/targets/postgres", "contend/targets/sim imports contend/targets/forge",
			"contend/targets/forge imports contend/targets/sim", "contend/targets/kit imports contend/targets/redis",
			"contend/runner imports contend/targets/all", "contend/targets/postgres imports contend/targets/forge/emulator")
	})
	packages, _ := ours(t, token.NewFileSet())
	none(t, "the contract imports no library, a store no other, and only cmd and tests import all", acrossStores(packages))
}

func TestNothingStartsUnseen(t *testing.T) {
	t.Run("planted", func(t *testing.T) {
		fset := token.NewFileSet()
		const source = `package p

import (
	_ "image/png" // offence
	. "os"
)

func init() {} // offence

func (T) init() {}

type T struct{}

var _ = Args
`
		file := parse(t, fset, "planted.go", source)
		expect(t, lines(fset, hiddenStarts(file)), marked("planted.go", source)...)
	})
	fset := token.NewFileSet()
	packages, _ := ours(t, fset)
	for _, p := range packages {
		for _, name := range slices.Concat(p.GoFiles, p.IgnoredGoFiles) {
			file := parse(t, fset, p.path(name), nil)
			none(t, "no init function, no blank import", lines(fset, hiddenStarts(file)))
		}
	}
}

func TestPackageVariablesDoNotChange(t *testing.T) {
	fset := token.NewFileSet()
	packages, imports := ours(t, fset)
	changed := func(t *testing.T, importPath string, files ...*ast.File) []string {
		t.Helper()
		info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
		if _, err := (&types.Config{Importer: imports}).Check(importPath, fset, files, info); err != nil {
			t.Fatal(err)
		}
		var offences []string
		for _, file := range files {
			offences = append(offences, lines(fset, changedVariables(file, info))...)
		}
		return offences
	}
	t.Run("planted", func(t *testing.T) {
		file := parse(t, fset, "planted.go", changes)
		expect(t, changed(t, "p", file), marked("planted.go", changes)...)
	})
	for _, p := range packages {
		var files []*ast.File
		for _, name := range p.GoFiles {
			files = append(files, parse(t, fset, p.path(name), nil))
		}
		none(t, "a package-level variable does not change", changed(t, p.ImportPath, files...))
	}
}

// changes has a mark on each line that changes a package-level variable.
const changes = `package p

import (
	"os"
	"sync"
)

var (
	number  int
	table   = map[string][]int{}
	point   struct{ x, y int }
	pointer = &point // offence
	mutex   sync.Mutex
	once    = sync.OnceValue(func() int { return number })
)

func change(other []int) {
	number = 1                 // offence
	number++                   // offence
	(number) += 1              // offence
	table["a"][0] = 1          // offence
	point.x, other[0] = 1, 2   // offence
	(*pointer).y = 1           // offence
	delete(table, "a")         // offence
	copy(table["a"][1:], other)// offence
	mutex.Lock()               // offence
	defer mutex.Unlock()       // offence
	os.Args = nil              // offence
	os.Args[0] = ""            // offence
	for number = range other { // offence
	}
	func() { number = 2 }()    // offence
}

func leave(table map[string]int, lock *sync.Mutex) {
	number := once()
	number++
	table["a"] = number
	delete(table, "a")
	lock.Lock()
	point := point
	point.x = pointer.x
	for mutex := range table {
		_, _ = mutex, number
	}
	delete := func(int) {}
	delete(number)
}
`

func TestTopLevelIsTidy(t *testing.T) {
	t.Run("planted", func(t *testing.T) {
		expect(t, strays([]string{"cmd", "house_test.go", "notes.md", "utils.go"}, topLevel), "notes.md", "utils.go")
	})
	ignored, err := os.ReadFile(".gitignore")
	if err != nil {
		t.Fatal(err)
	}
	patterns := slices.Clone(topLevel)
	for pattern := range strings.FieldsSeq(string(ignored)) {
		patterns = append(patterns, strings.Trim(pattern, "/"))
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	none(t, "does not belong in the top folder", strays(names, patterns))
}

// none fails a test for each breach of a rule.
func none(t *testing.T, rule string, offences []string) {
	t.Helper()
	for _, offence := range offences {
		t.Errorf("%s: %s", offence, rule)
	}
}

// expect compares offences without regard to their order.
func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got:\n\t%s\nwant:\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

func parse(t *testing.T, fset *token.FileSet, name string, source any) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(fset, name, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// lines gives the places of nodes as file:line.
func lines(fset *token.FileSet, nodes []ast.Node) []string {
	var places []string
	for _, n := range nodes {
		at := fset.Position(n.Pos())
		places = append(places, fmt.Sprintf("%s:%d", at.Filename, at.Line))
	}
	return places
}

// marked gives the lines of a source that are marked as offences.
func marked(name, source string) []string {
	var places []string
	for i, line := range strings.Split(source, "\n") {
		if strings.HasSuffix(line, "// offence") {
			places = append(places, fmt.Sprintf("%s:%d", name, i+1))
		}
	}
	return places
}
