package search

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
)

// A walk searches all files below a directory. Its workers take jobs from one
// stack, last in first out, so that few directories are open at a time.
//
// A walker by path, such as fastwalk, would not do: it opens every directory by
// its name from the top, and only the handle of a directory that is already
// open is proof against one that is swapped for a link meanwhile.
type walk struct {
	query   *Query
	pattern *pattern
	glob    *glob
	kind    *fileType
	below   int // length of the prefix of paths below the searched directory
	large   largeText
	stop    atomic.Bool

	mu      sync.Mutex
	wake    sync.Cond
	jobs    []job
	pending int // jobs on the stack or in work
}

// A job is a directory to enter or a batch of files to search.
type job struct {
	in    *folder
	dir   string   // a directory in it,
	files []string // or files in it; neither: in itself is to be listed
}

// batch is how many files a worker takes at once.
const batch = 16

// A folder is an open directory, open as long as a job refers to it.
type folder struct {
	Dir
	path  string // with a slash at the end, "" for the workspace
	rules *rules
	refs  atomic.Int32
}

func (f *folder) release() {
	if f.refs.Add(-1) == 0 {
		f.Close()
	}
}

// A hit is a file with a match.
type hit struct {
	path    string
	modTime int64 // nanoseconds, to be compared only
	n       int   // matches counted
}

// newestFirst orders hits as they are shown.
func newestFirst(a, b hit) int {
	return cmp.Or(cmp.Compare(b.modTime, a.modTime), cmp.Compare(a.path, b.path))
}

// A worker searches, and counts what it did.
type worker struct {
	*walk
	scanner *scanner
	tally   tally
	keep    int   // how many of the newest hits can be on the page
	hits    []hit // of these
}

// run searches below dir with the workers of the query, and returns what they
// found, newest first, as far as it can be on the page.
func (w *walk) run(dir Dir, path string, above *rules) (hits []hit, total tally) {
	w.wake.L = &w.mu
	root := &folder{Dir: dir, path: path, rules: above}
	w.push(job{in: root})
	workers := make([]*worker, max(w.query.Workers, 1))
	var wg sync.WaitGroup
	for i := range workers {
		workers[i] = w.newWorker()
		wg.Go(workers[i].loop)
	}
	wg.Wait()
	for _, worker := range workers {
		hits = append(hits, worker.hits...)
		total.add(&worker.tally)
	}
	slices.SortFunc(hits, newestFirst)
	return hits, total
}

func (w *walk) newWorker() *worker {
	return &worker{
		walk:    w,
		scanner: newScanner(w.pattern, &w.large, &w.stop),
		keep:    w.query.Offset - 1 + w.query.Limit,
	}
}

func (w *walk) push(jobs ...job) {
	for _, j := range jobs {
		j.in.refs.Add(1)
	}
	w.mu.Lock()
	w.jobs = append(w.jobs, jobs...)
	w.pending += len(jobs)
	w.mu.Unlock()
	if len(jobs) > 1 {
		w.wake.Broadcast()
	}
}

// take waits for a job; ok is false when all are done.
func (w *walk) take() (j job, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.jobs) == 0 {
		if w.pending == 0 {
			return job{}, false
		}
		w.wake.Wait()
	}
	last := len(w.jobs) - 1
	j, w.jobs[last] = w.jobs[last], job{}
	w.jobs = w.jobs[:last]
	return j, true
}

func (w *walk) done(j job) {
	j.in.release()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pending--; w.pending == 0 {
		w.wake.Broadcast()
	}
}

// loop works until nothing is left. When the search is stopped the jobs are
// still taken, to close their directories, but not done.
func (w *worker) loop() {
	for {
		j, ok := w.take()
		if !ok {
			return
		}
		switch {
		case w.stop.Load():
		case j.files != nil:
			w.searchAll(j)
		case j.dir != "":
			w.enter(j)
		default:
			w.list(j.in)
		}
		w.done(j)
	}
}

func (w *worker) enter(j job) {
	dir, err := j.in.OpenDir(j.dir)
	if err != nil {
		w.failed(err)
		return
	}
	f := &folder{Dir: dir, path: j.in.path + j.dir + "/", rules: j.in.rules}
	f.refs.Store(1)
	w.list(f)
	f.release()
}

// failed counts what could not be opened, unless it has just been removed.
func (w *worker) failed(err error) {
	if !errors.Is(err, fs.ErrNotExist) {
		w.tally.unreadable++
	}
}

// list makes jobs of the entries of f that are to be searched.
func (w *worker) list(f *folder) {
	entries, err := f.ReadDir()
	if err != nil {
		w.failed(err)
	}
	if !w.query.NoIgnore && slices.Contains(entries, Entry{".gitignore", Regular}) {
		f.rules = readRules(f.Dir, ".gitignore", len(f.path), f.rules)
	}
	var jobs []job
	var files []string
	for _, e := range entries {
		switch {
		case !w.wants(f, e):
		case e.Kind == Directory:
			jobs = append(jobs, job{in: f, dir: e.Name})
		default:
			files = append(files, e.Name)
		}
	}
	for some := range slices.Chunk(files, batch) {
		jobs = append(jobs, job{in: f, files: some})
	}
	w.push(jobs...)
}

// wants decides on one entry, and counts it when it is left out.
func (w *worker) wants(f *folder, e Entry) bool {
	isDir := e.Kind == Directory
	switch {
	case !isDir && e.Kind != Regular:
		return false
	case e.Name == ".git", e.Name[0] == '.' && !w.query.Hidden:
		w.tally.hidden++
		return false
	case !w.query.NoIgnore && f.rules.ignores(f.path, e.Name, isDir):
		w.tally.ignored++
		return false
	case isDir:
		return true
	case !w.kind.takes(e.Name) || w.glob != nil && !w.glob.takes(f.path+e.Name, w.below, e.Name):
		w.tally.filtered++
		return false
	}
	return true
}

func (w *worker) searchAll(j job) {
	for _, name := range j.files {
		if w.stop.Load() {
			return
		}
		file, err := j.in.OpenFile(name)
		if err != nil {
			w.failed(err)
			continue
		}
		w.search(file, j.in.path, name)
		file.Close()
	}
}

// search searches one open file.
func (w *worker) search(file File, prefix, name string) {
	n, what := w.scanner.count(file, w.query.Mode == Files)
	w.tally.count(what)
	if n == 0 {
		return
	}
	w.tally.files++
	w.tally.matches += n
	w.hits = append(w.hits, hit{prefix + name, file.ModTime().UnixNano(), n})
	if len(w.hits) > 2*w.keep && len(w.hits) > 4096 {
		slices.SortFunc(w.hits, newestFirst)
		w.hits = slices.Clip(w.hits[:w.keep])
	}
}
