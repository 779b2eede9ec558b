package settings

import (
	"fmt"
	"path/filepath"
	"strconv"
)

// A File is a copy for commands.
type File struct {
	Name string // in the directory that the caller lays the copies in
	Var  string // the variable that leads a tool to it; "" for one that another includes
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
// where the copies will lie.
func Collect(home, at string, read func(path string) string) Collection {
	c := collector{home: home, at: at, read: read, included: map[string]string{}}
	for _, source := range []struct {
		paths     []string // the first that has a text
		name, env string
		copy      func(string) (string, []string)
	}{
		{[]string{".npmrc"}, "npmrc", "npm_config_userconfig", NPM},
		{[]string{".config/pip/pip.conf", ".pip/pip.conf"}, "pip.conf", "PIP_CONFIG_FILE", Pip},
		{[]string{".config/go/env"}, "goenv", "GOENV", GoEnv},
	} {
		for _, path := range source.paths {
			if text := read(filepath.Join(home, path)); text != "" {
				copied, left := source.copy(text)
				c.add(path, File{source.name, source.env, copied}, left)
				break
			}
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

// git joins the two files in which git looks for the user's own settings: only one
// can be named to it.
func (c *collector) git() {
	text := ""
	for _, path := range []string{".config/git/config", ".gitconfig"} {
		file := filepath.Join(c.home, path)
		if from := c.read(file); from != "" {
			copied, left := Git(from, c.home, c.includer(file))
			text += copied
			for _, name := range left {
				c.Left = append(c.Left, fmt.Sprintf("~/%s: %s", path, name))
			}
		}
	}
	if text != "" {
		c.Files = append(c.Files, File{"gitconfig", "GIT_CONFIG_GLOBAL", text})
	}
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
	name := "gitconfig-" + strconv.Itoa(len(c.included)+1)
	c.included[path] = "" // one that includes itself ends here
	copied, left := Git(text, c.home, c.includer(path))
	c.included[path] = name
	c.add(rel, File{name, "", copied}, left)
}
