package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"runtime"
	"strings"
)

// What engines say when a container cannot be made, and what to tell of that. The
// first match counts. %[1]s is the engine's command, %[2]s the image.
var engineFaults = []struct {
	says      *regexp.Regexp
	what, way string
}{
	{regexp.MustCompile(`(?i)permission denied.*(docker daemon|docker\.sock|\.sock)|\.sock.*permission denied`),
		"this user may not use the daemon of %[1]s",
		"Ask the user to give it the right (for docker: sudo usermod -aG docker $USER, and to log in again), or to take an engine without a daemon: --container-engine podman."},
	{regexp.MustCompile(`(?i)cannot connect to|error during connect|is the docker daemon running|connection refused|no such host|dial unix`),
		"the daemon of %[1]s does not answer",
		"Ask the user to start it (for docker: sudo systemctl start docker), and to look at %[1]s info."},
	{regexp.MustCompile(`(?i)no matching manifest|image operating system|does not match the (detected|specified|expected)|exec format error|wrong architecture|no image found in (manifest list|image index) for`),
		"the image %[2]s is for another machine than the containers of %[1]s run on",
		"Ask the user to name an image for this machine with --container, or, where the engine runs on another kind of machine than perstack-base, one that has perstack-base itself on its PATH."},
	{regexp.MustCompile(`(?i)"?perstack-base"?: executable file not found|stat /?perstack-base`),
		"the containers of %[1]s run on another kind of machine than this server, and the image %[2]s has no perstack-base on its PATH",
		"Ask the user to add perstack-base of the same version to the image, or to use an engine on this machine."},
	{regexp.MustCompile(`(?i)bind source path does not exist|statfs .*no such file|error (while )?creating mount source|invalid mount config|mounts denied|not shared from`),
		"", ""}, // see blind
	{regexp.MustCompile(`(?i)invalid reference format|repository name must be|invalid reference`),
		"%[2]q is not the name of an image", "Ask the user to name one with --container, as in --container python:3.12-slim."},
	{regexp.MustCompile(`(?i)manifest unknown|pull access denied|repository does not exist|name unknown|denied: requested access|unauthorized|short-name .* did not resolve|manifest for .* not found`),
		"there is no image %[2]s, neither here nor where %[1]s looked for it", "Ask the user to check the name, to log in to its registry (%[1]s login), or to build or import it."},
	{regexp.MustCompile(`(?i)unable to find image|trying to pull|error pulling|initializing source|lookup .*(no such host|server misbehaving)|i/o timeout|network is unreachable|tls handshake|temporary failure in name resolution`),
		"the image %[2]s is not here and cannot be fetched", "Ask the user to run %[1]s pull %[2]s where there is a network, or to import the image."},
	{regexp.MustCompile(`(?i)no space left`),
		"there is no space left where %[1]s keeps its containers", "Ask the user to make room: %[1]s system prune removes what nobody uses."},
}

// failed says why the engine could not run a container. said is all that it wrote,
// last the end of that.
func (e *engine) failed(image, said, last string) error {
	for _, fault := range engineFaults {
		if !fault.says.MatchString(said) {
			continue
		}
		if fault.what == "" {
			return e.blind(last)
		}
		words := func(format string) string { // not all of them name both
			return fmt.Sprintf(strings.NewReplacer("%[2]q", fmt.Sprintf("%q", image), "%[2]s", image, "%[1]s", e.command).Replace(strings.ReplaceAll(format, "%%", "%")))
		}
		return &ContainerError{What: words(fault.what) + ": " + clipped(last), Way: words(fault.way)}
	}
	return &ContainerError{What: e.command + " cannot run a container: " + clipped(last), Way: "Ask the user to look at what perstack-base doctor says with the same flags."}
}

// blind: the engine's daemon sees other files than this server.
func (e *engine) blind(what string) error {
	return &ContainerError{What: "the daemon of " + e.command + " does not see the files of this server: " + clipped(what),
		Way: "Its daemon runs on another machine or in a file system of its own. Ask the user to start perstack-base where the daemon runs, or to share the workspace and " + tempWord() + " with it."}
}

func tempWord() string {
	if runtime.GOOS == "windows" {
		return "%TEMP%"
	}
	return "$TMPDIR (/tmp)"
}

func (e *engine) notStarted(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &ContainerError{What: "the command " + e.command + " is not there any more", Way: "Ask the user to install it again.", Err: err}
	}
	return &ContainerError{What: "the command " + e.command + " cannot be started: " + err.Error(), Err: err}
}
