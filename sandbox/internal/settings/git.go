package settings

import (
	"path/filepath"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox/internal/lazyregexp"
)

// A gitSetting is one entry of git's configuration.
type gitSetting struct {
	section, sub, key string // section and key in lower case
	value             string
	bare              bool // without a value, which means true
}

func (s gitSetting) name() string {
	if s.sub != "" {
		return s.section + "." + s.sub + "." + s.key
	}
	return s.section + "." + s.key
}

// gitSettings are git's own, without those that log in or run what does: other
// programs keep their tokens in sections of theirs.
var gitSettings = list{known: `user.name user.email user.signingkey user.useconfigonly author.name author.email committer.name committer.email
	add.* advice.* alias.* am.* apply.* blame.* branch.* checkout.* clean.* clone.* color.* column.* commit.* commitgraph.* core.* diff.* difftool.*
	extensions.* feature.* fetch.* filter.* format.* fsck.* gc.* gpg.* grep.* gui.* help.* http.* i18n.* include.path includeif.path index.* init.*
	interactive.* lfs.* log.* mailinfo.* mailmap.* maintenance.* merge.* mergetool.* notes.* pack.* pager.* pretty.* protocol.* pull.* push.*
	rebase.* receive.* remote.* rerere.* safe.* sequence.* showbranch.* stash.* status.* submodule.* tag.* tar.* transfer.* uploadpack.* url.* versionsort.* worktree.*`,
	but: "core.sshcommand core.askpass core.gitproxy http.*extraheader http.*cookie* http.*sslkey http.*sslcert http.*auth"}

// byRemote begins the condition of an include that holds an address.
const byRemote = "hasconfig:remote.*.url:"

func (s gitSetting) secret() bool {
	return !gitSettings.has(s.section+"."+s.key) || secretText(strings.TrimPrefix(s.sub, byRemote)) || secretText(s.value) ||
		s.runs() && !plainCommand.MatchString(s.value)
}

// gitCommands are settings that git gives to a shell.
const gitCommands = `core.editor core.pager core.fsmonitor sequence.editor filter.*clean filter.*smudge filter.*process diff.*command diff.*textconv diff.external
	merge.*driver difftool.*cmd mergetool.*cmd gpg.program gpg.*program pager.* interactive.difffilter tar.*command web.browser browser.*cmd man.*cmd`

// runs reports whether the value is a command for a shell: anything can stand there.
func (s gitSetting) runs() bool {
	return s.section == "alias" && strings.HasPrefix(s.value, "!") || matches(s.section+"."+s.key, gitCommands)
}

// plainCommand is a program with options that hold no value, or git-lfs as it
// installs itself.
var plainCommand = lazyregexp.New(`^(true|false|[\w./+-]+( +(-[A-Za-z]{1,6}|--[a-z-]+))*|git-lfs [a-z-]+( --skip)?( -- %f)?)?$`)

// shown is the name, without what may be secret in it.
func (s gitSetting) shown() string {
	if hasLogin(strings.TrimPrefix(s.sub, byRemote)) {
		s.sub = "..."
	}
	return s.name()
}

// gitFiles are settings that name a file which git reads.
var gitFiles = map[string]bool{"core.excludesfile": true, "core.attributesfile": true, "commit.template": true, "mailmap.file": true}

// Git copies a file of git's configuration. In values "~/" is home. For each file that
// it includes include is asked for the path of a copy, and attach for one that a
// setting names; "" leaves it out.
func Git(text, home string, include, attach func(path string) string) (copied string, left []string) {
	settings, rest := parseGit(text)
	if rest != "" {
		left = append(left, "what follows a line that git would refuse")
	}
	var out strings.Builder
	for _, s := range settings {
		if s.secret() {
			left = append(left, s.shown())
			continue
		}
		if rest, ok := strings.CutPrefix(s.value, "~/"); ok && home != "" {
			s.value = filepath.Join(home, rest)
		}
		if (s.section == "include" || s.section == "includeif") && s.key == "path" {
			if s.value = include(s.value); s.value == "" {
				continue
			}
		} else if gitFiles[s.name()] {
			if s.value = attach(s.value); s.value == "" {
				continue
			}
		}
		writeGit(&out, s)
	}
	return out.String(), left
}

// writeGit writes one entry with its own header, which git accepts.
func writeGit(out *strings.Builder, s gitSetting) {
	out.WriteString("[" + s.section)
	if s.sub != "" {
		out.WriteString(` "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s.sub) + `"`)
	}
	out.WriteString("]\n\t" + s.key)
	if !s.bare {
		out.WriteString(` = "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(s.value) + `"`)
	}
	out.WriteString("\n")
}

// parseGit reads entries until the text ends or is none of git's; rest begins where
// that is.
func parseGit(text string) (settings []gitSetting, rest string) {
	p := gitParser{text: strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")}
	for p.skip(); p.at < len(p.text); p.skip() {
		start := p.at
		if p.text[p.at] == '[' {
			if !p.header() {
				return settings, p.text[start:]
			}
			continue
		}
		s, ok := p.setting()
		if !ok {
			return settings, p.text[start:]
		}
		settings = append(settings, s)
	}
	return settings, ""
}

// A gitParser reads git's configuration as git's own reader does.
type gitParser struct {
	text         string
	at           int
	section, sub string
}

// skip passes over space, line ends and comments.
func (p *gitParser) skip() {
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case ' ', '\t', '\n':
			p.at++
		case '#', ';':
			for p.at < len(p.text) && p.text[p.at] != '\n' {
				p.at++
			}
		default:
			return
		}
	}
}

// header reads [section], [section "sub"] or the old [section.sub].
func (p *gitParser) header() bool {
	p.at++
	start := p.at
	for p.at < len(p.text) && (isGitName(p.text[p.at]) || p.text[p.at] == '.') {
		p.at++
	}
	name := strings.ToLower(p.text[start:p.at])
	p.section, p.sub, _ = strings.Cut(name, ".")
	for p.at < len(p.text) && (p.text[p.at] == ' ' || p.text[p.at] == '\t') {
		p.at++
	}
	if p.at < len(p.text) && p.text[p.at] == '"' && !p.subsection() {
		return false
	}
	if p.section == "" || p.at >= len(p.text) || p.text[p.at] != ']' {
		return false
	}
	p.at++
	return true
}

func (p *gitParser) subsection() bool {
	var sub strings.Builder
	for p.at++; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; c {
		case '"':
			p.sub = sub.String()
			p.at++
			return true
		case '\n':
			return false
		case '\\':
			if p.at++; p.at >= len(p.text) || p.text[p.at] == '\n' {
				return false
			}
			sub.WriteByte(p.text[p.at])
		default:
			sub.WriteByte(c)
		}
	}
	return false
}

// setting reads NAME or NAME = VALUE.
func (p *gitParser) setting() (s gitSetting, ok bool) {
	start := p.at
	for p.at < len(p.text) && isGitName(p.text[p.at]) {
		p.at++
	}
	s = gitSetting{section: p.section, sub: p.sub, key: strings.ToLower(p.text[start:p.at]), bare: true}
	if s.key == "" || s.section == "" {
		return s, false
	}
	for p.at < len(p.text) && (p.text[p.at] == ' ' || p.text[p.at] == '\t') {
		p.at++
	}
	if p.at >= len(p.text) || p.text[p.at] == '\n' || p.text[p.at] == '#' || p.text[p.at] == ';' {
		return s, true
	}
	if p.text[p.at] != '=' {
		return s, false
	}
	p.at++
	s.bare = false
	s.value, ok = p.value()
	return s, ok
}

// value reads to the end of the line, with quotes, escapes and comments.
func (p *gitParser) value() (string, bool) {
	var value strings.Builder
	quoted, keep := false, 0 // bytes up to keep stay when space at the end is cut
	for ; p.at < len(p.text); p.at++ {
		c := p.text[p.at]
		switch {
		case c == '\n':
			return value.String()[:keep], !quoted
		case !quoted && (c == '#' || c == ';'):
			p.skip()
			return value.String()[:keep], true
		case !quoted && (c == ' ' || c == '\t'):
			if value.Len() > 0 {
				value.WriteByte(c)
			}
			continue
		case c == '"':
			quoted = !quoted
			keep = value.Len()
			continue
		case c == '\\':
			if !p.escape(&value) {
				return "", false
			}
		default:
			value.WriteByte(c)
		}
		keep = value.Len()
	}
	return value.String()[:keep], !quoted
}

// escape reads what a backslash begins; at the end of a line it joins the next.
func (p *gitParser) escape(value *strings.Builder) bool {
	p.at++
	if p.at >= len(p.text) {
		return false
	}
	switch c := p.text[p.at]; c {
	case '\n':
	case 'n':
		value.WriteByte('\n')
	case 't':
		value.WriteByte('\t')
	case 'b':
		value.WriteByte('\b')
	case '"', '\\':
		value.WriteByte(c)
	default:
		return false
	}
	return true
}

func isGitName(c byte) bool {
	return c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
