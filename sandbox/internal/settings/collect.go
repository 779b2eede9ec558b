package settings

import (
	"fmt"
	"path/filepath"
	"strconv"
)

// A File is a copy for commands.
type File struct {
	Name string // below their HOME, where tools look for it
	Text string
}

// A Collection is what commands get of the user's configuration.
type Collection struct {
	Files []File
	Left  []string // what was left out: "~/.npmrc: //host/:_authToken"
}

// maxIncludes bounds the files that git's configuration includes.
const maxIncludes = 16

// Collect copies the configuration of a user whose home directory is home. read
// returns the text of a file, "" for one that is not there or cannot be read; at is
// the private HOME in which the copies will lie.
func Collect(home, at string, read func(path string) string) Collection {
	c := collector{home: home, at: at, read: read, included: map[string]string{}}
	for _, source := range []struct {
		path string // the same below both homes
		copy func(string) (string, []string)
	}{
		{".npmrc", NPM},
		{".config/pip/pip.conf", Pip},
		{".pip/pip.conf", Pip},
		{".config/go/env", GoEnv},
		{".cargo/config.toml", Cargo},
		{".cargo/config", Cargo},
	} {
		if text := read(filepath.Join(home, source.path)); text != "" {
			copied, left := source.copy(text)
			c.add(source.path, File{source.path, copied}, left)
		}
	}
	c.git()
	return c.Collection
}

type collector struct {
	Collection
	home, at string
	read     func(string) string
	included map[string]string // path -> name of its copy, "" while it is being made
}

func (c *collector) add(path string, f File, left []string) {
	c.Files = append(c.Files, f)
	for _, name := range left {
		c.Left = append(c.Left, fmt.Sprintf("~/%s: %s", path, name))
	}
}

// git joins the two files in which git looks for the user's own settings, and keeps
// the files of names to ignore that they, or git's own defaults, name.
func (c *collector) git() {
	text := ""
	for key, path := range map[string]string{"excludesfile": ".config/git/ignore", "attributesfile": ".config/git/attributes"} {
		if c.read(filepath.Join(c.home, path)) != "" {
			text += fmt.Sprintf("[core]\n\t%s = %q\n", key, c.attach(filepath.Join(c.home, path)))
		}
	}
	for _, path := range []string{".config/git/config", ".gitconfig"} {
		file := filepath.Join(c.home, path)
		if from := c.read(file); from != "" {
			copied, left := Git(from, c.home, c.includer(file), c.attach)
			text += copied
			for _, name := range left {
				c.Left = append(c.Left, fmt.Sprintf("~/%s: %s", path, name))
			}
		}
	}
	if text != "" {
		c.Files = append(c.Files, File{".gitconfig", text})
	}
}

// attach copies a file that a setting names, as it is, and returns where the copy
// will lie; "" for none.
func (c *collector) attach(path string) string {
	rel, err := filepath.Rel(c.home, path)
	if err != nil || !filepath.IsLocal(rel) {
		return path
	}
	text := c.read(path)
	if text == "" || len(c.included) >= maxIncludes {
		return ""
	}
	if c.included[path] == "" {
		c.included[path] = ".gitconfig.d/" + strconv.Itoa(len(c.included)+1)
		c.add(rel, File{c.included[path], text}, nil)
	}
	return filepath.Join(c.at, c.included[path])
}

// includer copies what a file of git's includes, as far as it is below the home
// directory, and returns where the copy will lie.
func (c *collector) includer(from string) func(string) string {
	return func(path string) string {
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(from), path)
		}
		rel, err := filepath.Rel(c.home, path)
		if err != nil || !filepath.IsLocal(rel) {
			return ""
		}
		if _, known := c.included[path]; !known {
			c.include(path, rel)
		}
		if c.included[path] == "" {
			return ""
		}
		return filepath.Join(c.at, c.included[path])
	}
}

// include copies one file, unless there is none or there are too many.
func (c *collector) include(path, rel string) {
	text := c.read(path)
	if text == "" || len(c.included) >= maxIncludes {
		return
	}
	name := ".gitconfig.d/" + strconv.Itoa(len(c.included)+1)
	c.included[path] = "" // one that includes itself ends here
	copied, left := Git(text, c.home, c.includer(path), c.attach)
	c.included[path] = name
	c.add(rel, File{name, copied}, left)
}
