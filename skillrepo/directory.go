package skillrepo

import (
	"path"
	"slices"
	"strings"
)

// A Child is a direct entry of a published directory.
type Child struct {
	URI      string `json:"uri"`
	Name     string `json:"name"`
	MIMEType string `json:"mimeType"`
	Size     *int64 `json:"size,omitempty"` // of files only
}

// DirectoryType is the MIME type of a directory.
const DirectoryType = "inode/directory"

// Children lists the direct entries of the target, a directory, by name.
func (t *Target) Children() []Child {
	children := []Child{}
	for _, f := range t.files.Files {
		if parent(f.Path) == t.Dir {
			children = append(children, Child{t.FileURI(f.Path), path.Base(f.Path), MIMEType(f.Path), &f.Size})
		}
	}
	for _, d := range t.files.Dirs {
		if parent(d) == t.Dir {
			children = append(children, Child{t.FileURI(d), path.Base(d), DirectoryType, nil})
		}
	}
	slices.SortFunc(children, func(a, b Child) int { return strings.Compare(a.Name, b.Name) })
	return children
}

// parent is the directory of a relative path, "" at the top.
func parent(p string) string {
	dir, _ := path.Split(p)
	return strings.TrimSuffix(dir, "/")
}

// mimeTypes are those of files that skills are made of. The system's own tables
// are not asked: the answer must not depend on the machine.
var mimeTypes = map[string]string{
	".md": "text/markdown", ".markdown": "text/markdown", ".txt": "text/plain", "": "text/plain",
	".csv": "text/csv", ".tsv": "text/tab-separated-values", ".html": "text/html", ".htm": "text/html", ".css": "text/css",
	".xml": "application/xml", ".json": "application/json", ".yaml": "application/yaml", ".yml": "application/yaml",
	".toml": "application/toml", ".ini": "text/plain", ".cfg": "text/plain", ".tmpl": "text/plain", ".tpl": "text/plain",
	".py": "text/x-python", ".sh": "text/x-shellscript", ".bash": "text/x-shellscript", ".ps1": "text/plain",
	".js": "text/javascript", ".mjs": "text/javascript", ".cjs": "text/javascript", ".ts": "text/x-typescript",
	".go": "text/x-go", ".rb": "text/x-ruby", ".pl": "text/x-perl", ".php": "text/x-php", ".r": "text/x-r",
	".sql": "application/sql", ".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg",
	".gif": "image/gif", ".webp": "image/webp", ".pdf": "application/pdf", ".zip": "application/zip",
	".gz": "application/gzip", ".ttf": "font/ttf", ".otf": "font/otf", ".woff": "font/woff", ".woff2": "font/woff2",
	".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
}

// MIMEType tells a file's type by its name.
func MIMEType(name string) string {
	if t, ok := mimeTypes[strings.ToLower(path.Ext(name))]; ok {
		return t
	}
	return "application/octet-stream"
}
