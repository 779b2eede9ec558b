package skillrepo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"time"

	"github.com/perstack-ai/perstack-base/skillrepo/internal/signature"
)

// A Manifest is a listing in which every file has its digest.
type Manifest struct {
	Listing
	Digest string // sha256:<hex> over the lines "<hex> <size> <path>\n" of all files
}

// Manifest lists the skill's files and hashes those that changed since they were
// last hashed. A file that cannot be read is left out with a diagnostic.
func (s *Skill) Manifest(ctx context.Context) (*Manifest, error) {
	list, err := s.Files(ctx)
	if err != nil {
		return nil, err
	}
	m := &Manifest{Listing: *list}
	n := notes{dir: s.Dir, list: list.Diagnostics}
	kept, sum := m.Files[:0], sha256.New()
	m.Bytes = 0
	for _, f := range m.Files {
		h, err := s.hash(ctx, &f)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			n.warn("%v", plainError(fmt.Sprintf("%q is left out", f.Path), err))
			continue
		}
		_, _ = fmt.Fprintf(sum, "%x %d %s\n", h, f.Size, f.Path)
		f.Digest = "sha256:" + hex.EncodeToString(h[:])
		m.Bytes += f.Size
		kept = append(kept, f)
	}
	m.Files, m.Digest = kept, "sha256:"+hex.EncodeToString(sum.Sum(nil))
	m.Diagnostics = n.list
	return m, nil
}

// Digest is the digest of the skill's manifest: it changes with any byte or path.
func (s *Skill) Digest(ctx context.Context) (string, error) {
	m, err := s.Manifest(ctx)
	if err != nil {
		return "", err
	}
	return m.Digest, nil
}

// hash returns the hash of a file's content and makes f.Size the bytes hashed.
func (s *Skill) hash(ctx context.Context, f *File) (signature.Hash, error) {
	key := s.tree.abs(f.real)
	if h, ok := s.hashes.Get(key, f.sig); ok {
		return h, nil
	}
	file, info, err := s.tree.openFile(f.real)
	if err != nil {
		return signature.Hash{}, err
	}
	defer func() { _ = file.Close() }()
	sig, read, sum := signature.Of(info), time.Now(), sha256.New()
	f.Size, err = io.Copy(sum, &ctxReader{ctx, file})
	if err != nil {
		return signature.Hash{}, err
	}
	h := signature.Hash(sum.Sum(nil))
	if after, err := file.Stat(); err == nil && signature.Of(after) == sig {
		s.hashes.Put(key, sig, read, h)
	}
	return h, nil
}

// A ctxReader ends with its context, between reads.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *ctxReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
