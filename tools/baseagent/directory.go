package baseagent

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/perstack-ai/perstack-base/tools"
)

// directory words an error about a path that should lead to a directory.
func directory(env *tools.Env, path string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	hint := ""
	if near := env.Files.Near(path); len(near) > 0 {
		hint = "Did you mean " + strings.Join(near, " or ") + "?"
	}
	return tools.Errorf(tools.NotFound, hint, "Directory %s does not exist.", path)
}
