package skillrepo

import (
	"fmt"
	"strings"
)

// Catalogue is the list of all known skills as a model is shown it, at most limit
// bytes of whole lines; tool is the tool that loads a skill. Empty without skills.
func (r *Repo) Catalogue(limit int, tool string) string { return catalogue(r.List(), limit, tool) }

func catalogue(skills []*Skill, limit int, tool string) string {
	if len(skills) == 0 {
		return ""
	}
	text := "The following skills provide specialized instructions for specific tasks.\n" +
		"When a task matches a skill's description, call the `" + tool + "` tool with the skill's name to load its full instructions.\n"
	ends := []int{len(text)} // ends[k]: where the text with k skills ends
	for _, s := range skills {
		if len(text) > limit {
			break
		}
		text += "\n" + s.catalogueLine()
		ends = append(ends, len(text))
	}
	for k := len(ends) - 1; k >= 0; k-- {
		tail := ""
		if more := len(skills) - k; more > 0 {
			tail = fmt.Sprintf("\n… and %d more skills", more)
		}
		if ends[k]+len(tail) <= limit {
			return text[:ends[k]] + tail
		}
	}
	return ""
}

func (s *Skill) catalogueLine() string {
	line := "- " + s.Name + ": " + oneLine(s.Description)
	if len(s.Paths) > 0 {
		line += " [activates for: " + oneLine(strings.Join(s.Paths, ", ")) + "]"
	}
	return line
}

// oneLine makes all white space single blanks.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
