package launch

// console is where the output of the ranks goes, and what the launcher itself prints.
type console struct {
	cfg            *Output
	ranks          int
	stdout, stderr *sink
	folds          folds
	files          *outputFiles // nil: the output goes to stdout and stderr
}

func newConsole(cfg *Output, ranks int) console {
	both := new(screen)
	return console{cfg: cfg, ranks: ranks, stdout: newSink(both, cfg.Stdout), stderr: newSink(both, cfg.Stderr)}
}

// open creates the files of a job whose output goes to a directory.
func (c *console) open() (err error) {
	if c.cfg.Dir != "" {
		c.files, err = createOutput(c.cfg.Dir, c.ranks, c.reportLost)
	}
	return err
}

// lines returns the function that writes a rank's lines.
func (c *console) lines(rank int, isStderr bool) func(text []byte) {
	if c.files != nil {
		return c.files.writer(rank, isStderr)
	}
	var label []byte
	if c.cfg.labels(c.ranks) {
		label = rankLabel(rank, c.ranks)
	}
	if !isStderr {
		return c.stdout.lineWriter(label)
	}
	write := c.stderr.lineWriter(label)
	if label == nil || c.cfg.Quiet {
		return write
	}
	return func(text []byte) { write(c.folds.rest(rank, text)) }
}

// notice prints lines of the launcher itself.
func (c *console) notice(lines ...string) {
	if c.cfg.Quiet {
		return
	}
	var text []byte
	for _, l := range lines {
		text = append(append(text, l...), '\n')
	}
	c.stderr.write([]byte("muster: "), text)
}

// reportLost reports that output could not be written to its file, in a quiet job too: it is
// an error of the job.
func (c *console) reportLost(err error) {
	c.stderr.write([]byte("muster: "), []byte("output is lost: "+err.Error()+"\n"))
}
