package containers

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/lazyregexp"
	"github.com/perstack-ai/perstack-base/sandbox/internal/remote"
)

// What engines say when a container cannot be made, and what to tell of that. The
// first match counts.
var engineFaults = []struct {
	says      *lazyregexp.Regexp
	what, way string
}{
	{lazyregexp.New(`(?i)permission denied.*(docker daemon|docker\.sock|\.sock)|\.sock.*permission denied`),
		"this user may not use the daemon of ENGINE",
		"Ask the user to give it the right (for docker: sudo usermod -aG docker $USER, and to log in again), or to take an engine without a daemon: --container-engine podman."},
	{lazyregexp.New(`(?i)cannot connect to|error during connect|is the docker daemon running|failed to connect to the docker API|unable to connect to podman`),
		"the daemon of ENGINE does not answer",
		"Ask the user to start it (for docker: sudo systemctl start docker), and to look at ENGINE info."},
	{lazyregexp.New(`(?i)no matching manifest|image operating system|does not match the (detected|specified|expected)|exec format error|wrong architecture|no image found in (manifest list|image index) for`),
		"the image IMAGE is for another machine than the containers of ENGINE run on",
		"Ask the user to name an image for this machine with --container, or, where the engine runs on another kind of machine than perstack-base, one that has perstack-base itself on its PATH."},
	{lazyregexp.New(`(?i)"?perstack-base"?: executable file not found|stat /?perstack-base`),
		"the containers of ENGINE run on another kind of machine than this server, and the image IMAGE has no perstack-base on its PATH",
		"Ask the user to add perstack-base of the same version to the image, or to use an engine on this machine."},
	{lazyregexp.New(`(?i)bind source path does not exist|statfs .*no such file|error (while )?creating mount source|error mounting .*(read-only file system|no such file|not a directory)|invalid mount config|mounts denied|not shared from`),
		"", ""}, // see blind
	{lazyregexp.New(`(?i)invalid reference format|repository name must be|invalid reference`),
		"\"IMAGE\" is not the name of an image", "Ask the user to name one with --container, as in --container python:3.12-slim."},
	{lazyregexp.New(`(?i)manifest unknown|pull access denied|repository does not exist|name unknown|denied: requested access|unauthorized|short-name .* did not resolve|manifest for .* not found`),
		"there is no image IMAGE, neither here nor where ENGINE looked for it", "Ask the user to check the name, to log in to its registry (ENGINE login), or to build or import it."},
	{lazyregexp.New(`(?i)unable to find image|trying to pull|error pulling|initializing source|lookup .*(no such host|server misbehaving)|i/o timeout|network is unreachable|tls handshake|temporary failure in name resolution`),
		"the image IMAGE is not here and cannot be fetched", "Ask the user to run ENGINE pull IMAGE where there is a network, or to import the image."},
	{lazyregexp.New(`(?i)no space left`),
		"there is no space left where ENGINE keeps its containers", "Ask the user to make room: ENGINE system prune removes what nobody uses."},
}

// failed says why the engine could not run a container. said is all that it wrote,
// last the end of that.
func (e *Engine) failed(image, said, last string) error {
	for _, fault := range engineFaults {
		if !fault.says.MatchString(said) {
			continue
		}
		if fault.what == "" {
			return e.blind(last)
		}
		names := strings.NewReplacer("ENGINE", e.Command, "IMAGE", image)
		return &Error{What: names.Replace(fault.what) + ": " + remote.Clip(last), Way: names.Replace(fault.way)}
	}
	return &Error{What: e.Command + " cannot run a container: " + remote.Clip(last), Way: "Ask the user to look at what perstack-base doctor says with the same flags."}
}

// silent: the engine neither runs a container nor says why not. last is what it had said
// before, if anything.
func (e *Engine) silent(silence time.Duration, last string) error {
	what := fmt.Sprintf("%s run has said nothing for %v, and runs no container", e.Command, silence)
	if last != "" {
		what += "; before that: " + remote.Clip(last)
	}
	return &Error{What: what, Way: "Ask the user to look whether its daemon works (" + e.Command + " ps), and to start that again."}
}

// blind: the engine's daemon sees other files than this server.
func (e *Engine) blind(what string) error {
	return &Error{What: "the daemon of " + e.Command + " does not see the files of this server: " + remote.Clip(what),
		Way: "Its daemon runs on another machine or in a file system of its own. Ask the user to start perstack-base where the daemon runs, or to share the workspace and " + tempWord() + " with it."}
}

func tempWord() string {
	if runtime.GOOS == "windows" {
		return "%TEMP%"
	}
	return "$TMPDIR (/tmp)"
}

func (e *Engine) notStarted(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &Error{What: "the command " + e.Command + " is not there any more", Way: "Ask the user to install it again.", Err: err}
	}
	return &Error{What: "the command " + e.Command + " cannot be started: " + err.Error(), Err: err}
}
