package settings

import "strings"

var npmSettings = list{known: `registry @*:registry cafile ca strict-ssl save* audit audit-level fund engine-strict legacy-peer-deps
	strict-peer-deps strict-peer-dependencies auto-install-peers dedupe-peer-dependents resolve-peers-from-workspace-root
	hoist hoist-* public-hoist-* public-shamefully-hoist node-linker symlink link-workspace-packages shared-workspace-lockfile
	side-effects-cache package-import-method resolution-mode package-manager-strict manage-package-manager-versions
	ignore-scripts ignore-workspace-root-check prefer-* fetch-* network-concurrency maxsockets loglevel proxy http-proxy https-proxy noproxy no-proxy
	email init-* init.* package-lock lockfile frozen-lockfile omit include install-strategy install-links global-style
	access tag tag-version-prefix sign-git-tag git-tag-version message commit-hooks before bin-links cache prefix store-dir virtual-store-dir
	progress color unicode update-notifier timing production optional dev offline node-options script-shell foreground-scripts
	workspaces workspaces-update include-workspace-root replace-registry-host depth yes editor long json usage`}

var pipSettings = list{known: `index-url extra-index-url index find-links trusted-host timeout default-timeout retries no-index pre prefer-binary
	only-binary no-binary cert proxy constraint requirement require-virtualenv require-hashes user no-user prefix root target upgrade upgrade-strategy
	no-deps no-build-isolation use-pep517 cache-dir no-cache-dir disable-pip-version-check no-color no-input quiet verbose progress-bar
	break-system-packages no-compile compile no-warn-script-location no-warn-conflicts ignore-installed ignore-requires-python
	format resume-retries use-feature use-deprecated platform python-version implementation abi src exists-action isolated editable
	no-clean build-option global-option config-settings report wheel-dir dest`}

var pipSections = list{known: "global install download wheel freeze list search index cache uninstall check show hash lock"}

// goSettings: the names of the go command itself have no "_" but for cgo's.
var goSettings = list{known: "GO* CGO_* AR CC CXX FC GCCGO PKG_CONFIG", but: "GOAUTH GO*_*"}

// NPM copies a .npmrc: registries stay; logins, certificates and whatever belongs to
// one host alone ("//host/:name") go. npm trims each line; it reads nothing of its
// own in sections, and escapes in strings as JSON does.
func NPM(text string) (copied string, left []string) {
	var out strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		name, value, comment := setting(line, "=")
		switch {
		case comment:
			continue
		case strings.HasPrefix(line, "["):
			return out.String(), append(left, "what follows the header of a section")
		case !quoted(value):
			line, _, _ = strings.Cut(line, ";")
			line, _, _ = strings.Cut(line, "#")
			line = strings.TrimSpace(line)
		}
		if !npmSettings.has(strings.TrimSuffix(name, "[]")) || secretText(value) || strings.Contains(strings.ReplaceAll(value, `\n`, ""), `\`) {
			left = append(left, shown(name))
			continue
		}
		out.WriteString(line + "\n")
	}
	return out.String(), left
}

func quoted(value string) bool {
	return len(value) > 1 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0]
}

// Pip copies a pip.conf. A line that is indented more than its setting continues it.
func Pip(text string) (copied string, left []string) {
	var out strings.Builder
	name, indent := "", 0
	section, keep := true, false // whether the section is copied, and the setting
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		key, value, comment := setting(trimmed, "=:")
		depth := len(line) - len(strings.TrimLeft(line, " \t"))
		switch {
		case comment:
		case name != "" && depth > indent:
			if keep && secretText(trimmed) {
				left = append(left, shown(name))
			} else if keep {
				out.WriteString("    " + trimmed + "\n")
			}
		case strings.HasPrefix(trimmed, "["):
			name, section = "", pipSections.has(strings.Trim(trimmed, "[]"))
			if section {
				out.WriteString(trimmed + "\n")
			}
		default:
			name, indent = shown(key), depth
			keep = section && pipSettings.has(strings.ReplaceAll(strings.ToLower(key), "_", "-")) && !secretText(value)
			if keep {
				out.WriteString(trimmed + "\n")
			} else {
				left = append(left, name)
			}
		}
	}
	return out.String(), left
}

// GoEnv copies the file that "go env -w" writes.
func GoEnv(text string) (copied string, left []string) {
	var out strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		name, value, comment := setting(line, "=")
		switch {
		case comment:
		case goSettings.has(name) && !secretText(value):
			out.WriteString(line + "\n")
		default:
			left = append(left, shown(name))
		}
	}
	return out.String(), left
}

// setting takes a trimmed line apart. What has no separator has no name: all of it is
// a value then.
func setting(line, separators string) (name, value string, comment bool) {
	if line == "" || line[0] == '#' || line[0] == ';' {
		return "", "", true
	}
	if i := strings.IndexAny(line, separators); i >= 0 {
		return strings.TrimSpace(line[:i]), strings.TrimSpace(line[i+1:]), false
	}
	return "", line, false
}
