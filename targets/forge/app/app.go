// Package app holds the companion app: the Forge app that does contend's
// requests next to the storage of the platform.
package app

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

//go:embed README.md manifest.yml package.json package-lock.json src
var files embed.FS

// Files returns the paths of the app's files, separated by slashes, in order.
func Files() []string {
	var paths []string
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		panic(err) // it is embedded
	}
	return paths
}

// WriteTo writes the app to a folder, which it makes where there is none. A
// folder that holds something is refused.
func WriteTo(dir string) error {
	// Without a name os.CopyFS would write to the root of the file system.
	if strings.TrimSpace(dir) == "" {
		return fmt.Errorf("%q is no name of a folder; name a new or empty one", dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%q cannot hold the app: %w", dir, err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("the folder %q is not empty; name a new one, or empty it first", dir)
	}
	return os.CopyFS(dir, files)
}

// Steps returns the commands that deploy, use and remove the app, a line each, as
// the app's README has them.
func Steps() string {
	readme, err := files.ReadFile("README.md")
	if err != nil {
		panic(err) // it is embedded
	}
	_, rest, _ := strings.Cut(string(readme), "```sh\n")
	steps, _, _ := strings.Cut(rest, "```")
	return steps
}
