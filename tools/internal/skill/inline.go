package skill

import "strings"

// A piece of a skill's body is plain text or an inline command.
type piece struct {
	text    string // as it stands in the body
	command string // what the shell runs; "" for plain text
}

// pieces cuts a body, whose line ends are \n, at its inline commands: !`cmd` on
// one line, and fences whose info string is "!". What other fences and code spans
// of two or more backticks quote is text. The pieces' texts together are the body.
func pieces(body string) []piece {
	c := cutter{body: body}
	for c.pos < len(body) {
		if f, ok := openingFence(c.line()); ok {
			c.fence(f)
		} else {
			c.inline()
		}
	}
	c.flush(len(body))
	return c.out
}

type cutter struct {
	body  string
	pos   int // what is being looked at; at the start of a line between calls
	start int // of the text not yet put out
	out   []piece

	paragraph int         // where the paragraph being looked at ends
	lastRun   map[int]int // in it, by length: the last run of backticks
}

// flush puts out the plain text that ends at a position.
func (c *cutter) flush(end int) {
	if end > c.start {
		c.out = append(c.out, piece{text: c.body[c.start:end]})
	}
	c.start = end
}

// add puts out a command that stands at [from, to).
func (c *cutter) add(from, to int, command string) {
	c.flush(from)
	c.out = append(c.out, piece{text: c.body[from:to], command: command})
	c.start = to
}

func (c *cutter) lineEnd(pos int) int {
	if i := strings.IndexByte(c.body[pos:], '\n'); i >= 0 {
		return pos + i
	}
	return len(c.body)
}

func (c *cutter) line() string { return c.body[c.pos:c.lineEnd(c.pos)] }

func (c *cutter) nextLine() { c.pos = min(c.lineEnd(c.pos)+1, len(c.body)) }

// fence passes over a fenced block, to the end if it is not closed. A closed one
// whose info is "!" is a command; one that is not closed might be cut off text.
func (c *cutter) fence(f fence) {
	from := c.pos
	c.nextLine()
	script := c.pos
	for c.pos < len(c.body) {
		end := c.lineEnd(c.pos)
		if !f.closedBy(c.body[c.pos:end]) {
			c.nextLine()
			continue
		}
		if code := c.body[script:c.pos]; f.runs && strings.TrimSpace(code) != "" {
			c.add(from, end, strings.TrimSuffix(code, "\n"))
		}
		c.nextLine()
		return
	}
}

// inline passes over one line outside fences, or more if a code span goes on.
func (c *cutter) inline() {
	end := c.lineEnd(c.pos)
	for i := c.pos; i < end; {
		if c.body[i] != '`' {
			i++
			continue
		}
		n := runLength(c.body[i:])
		if n > 1 {
			i = c.span(i, n)
			end = max(end, c.lineEnd(min(i, len(c.body))))
			continue
		}
		if to, ok := c.command(i, end); ok {
			c.add(i-1, to, c.body[i+1:to-1])
			i = to
			continue
		}
		i++
	}
	c.pos = min(end+1, len(c.body))
}

// command finds the end of !`cmd` whose first backtick is at i.
func (c *cutter) command(i, end int) (to int, ok bool) {
	bang := i - 1
	if bang < 0 || c.body[bang] != '!' || bang > 0 && !strings.ContainsRune(" \t\n", rune(c.body[bang-1])) {
		return 0, false
	}
	k := strings.IndexByte(c.body[i+1:end], '`')
	if k < 0 || runLength(c.body[i+1+k:]) != 1 || strings.TrimSpace(c.body[i+1:i+1+k]) == "" {
		return 0, false
	}
	return i + 1 + k + 1, true
}

// span passes over a code span that opens with n backticks at i, which ends at the
// next run of n within the paragraph. Without one the backticks are text.
func (c *cutter) span(i, n int) int {
	if i >= c.paragraph {
		c.readParagraph(i)
	}
	if c.lastRun[n] <= i {
		return i + n
	}
	for k := i + n; k < c.paragraph; {
		if c.body[k] != '`' {
			k++
			continue
		}
		m := runLength(c.body[k:])
		if k += m; m == n {
			return k
		}
	}
	return i + n
}

// readParagraph finds the end of the paragraph at i, and where in it the last run
// of each length of backticks is: so no search for a run fails, however many there are.
func (c *cutter) readParagraph(i int) {
	end := c.lineEnd(i)
	for end < len(c.body) {
		next := c.lineEnd(end + 1)
		line := c.body[end+1 : next]
		if _, fenced := openingFence(line); fenced || strings.TrimSpace(line) == "" {
			break
		}
		end = next
	}
	c.paragraph, c.lastRun = end, map[int]int{}
	for k := i; k < end; k++ {
		if c.body[k] == '`' {
			m := runLength(c.body[k:])
			c.lastRun[m] = k
			k += m - 1
		}
	}
}

func runLength(s string) int { return len(s) - len(strings.TrimLeft(s, s[:1])) }

// A fence is the opening line of a fenced code block.
type fence struct {
	mark string // the run of backticks or tildes
	runs bool   // its content is an inline command
}

// openingFence reads a line as the start of a fenced block: at any indentation,
// also behind quote and list markers. Only one that stands by itself runs.
func openingFence(line string) (fence, bool) {
	rest := uncontained(line)
	for _, mark := range []byte{'`', '~'} {
		if len(rest) < 3 || rest[0] != mark || runLength(rest) < 3 {
			continue
		}
		n := runLength(rest)
		info := strings.Trim(rest[n:], " \t")
		if mark == '`' && strings.Contains(info, "`") {
			return fence{}, false
		}
		alone := len(line)-len(strings.TrimLeft(line, " ")) <= 3 && strings.TrimLeft(line, " ") == rest
		return fence{rest[:n], alone && mark == '`' && info == "!"}, true
	}
	return fence{}, false
}

func (f fence) closedBy(line string) bool {
	rest := line
	if !f.runs {
		rest = uncontained(line)
	}
	rest = strings.Trim(rest, " \t")
	return len(rest) >= len(f.mark) && strings.Trim(rest, f.mark[:1]) == ""
}

// uncontained strips indentation, quote markers and list markers from a line.
func uncontained(line string) string {
	for {
		line = strings.TrimLeft(line, " \t")
		rest := strings.TrimLeft(line, "0123456789")
		switch {
		case strings.HasPrefix(line, ">"):
			line = line[1:]
		case len(line) > 1 && strings.IndexByte("-*+", line[0]) >= 0 && (line[1] == ' ' || line[1] == '\t'):
			line = line[2:]
		case len(rest) < len(line) && len(rest) > 1 && (rest[0] == '.' || rest[0] == ')') && (rest[1] == ' ' || rest[1] == '\t'):
			line = rest[2:]
		default:
			return line
		}
	}
}
