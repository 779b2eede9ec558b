package tools

// A Profile is a named set of tools that speaks one wire, with its own words for
// the model. Compiled-in skills of other systems are profiles here.
type Profile struct {
	Name         string
	Summary      string // one line for people
	Instructions string // sentences for the model, joined into the server's instructions
	Dialect      Dialect
	Tools        []*Tool
}

// Tool returns the profile's tool of that name, or nil.
func (p *Profile) Tool(name string) *Tool {
	for _, t := range p.Tools {
		if t.Name == name {
			return t
		}
	}
	return nil
}
